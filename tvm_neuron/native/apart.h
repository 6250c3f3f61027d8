// Apart: keeps a sleeping thread off the processor of the one that is about to wake it.
//
// A guest's kernel takes a processor that its host has put to rest for one that is not available, so that it starts a
// woken thread where the waker runs, and moves it only after some milliseconds: both then share one processor while the
// other one rests. Threads on other processors than the waker's may still be moved by the kernel among these.

#ifndef TVM_NEURON_NATIVE_APART_H_
#define TVM_NEURON_NATIVE_APART_H_

#ifdef __linux__

#include <pthread.h>
#include <sched.h>

namespace tvm_neuron {

class Apart {
 public:
  // The thread that is kept apart is the one that makes this, and all its processors are those that it may use.
  Apart() : thread_(pthread_self()) {
    if (pthread_getaffinity_np(thread_, sizeof(all_), &all_) != 0) CPU_ZERO(&all_);
  }

  // Call it from the waker's thread. Does nothing where there are no other processors.
  void Leave() {
    int current = sched_getcpu();
    if (current < 0 || current == left_) return;
    cpu_set_t others = all_;
    CPU_CLR(current, &others);
    if (CPU_COUNT(&others) > 0 && pthread_setaffinity_np(thread_, sizeof(others), &others) == 0) left_ = current;
  }

 private:
  const pthread_t thread_;
  cpu_set_t all_;
  int left_ = -1;
};

}  // namespace tvm_neuron

#else

namespace tvm_neuron {

struct Apart {  // elsewhere kernels have no calls for it, or none that is needed
  void Leave() {}
};

}  // namespace tvm_neuron

#endif

#endif  // TVM_NEURON_NATIVE_APART_H_
