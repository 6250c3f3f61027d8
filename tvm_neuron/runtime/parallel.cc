// Parallel loops of the CPU parts, in the place of TVM's: one pool of threads for the whole process.
//
// TVM gives every thread a fixed share and waits for all, so that one which can't begin, because its processor is busy,
// holds up the loop; and each caller has a pool of its own, tied to the same processors. Here a loop is cut into more
// pieces than there are threads, each takes the next one when it is done, and the caller never waits for a thread that
// has not begun. Generated code calls TVMBackendParallelLaunch of tvm/runtime/c_backend_api.h through a pointer that is
// set when a library is loaded.

#include <tvm/ffi/c_api.h>
#include <tvm/ffi/extra/c_env_api.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

namespace {

struct Group {  // TVMParallelGroupEnv
  void* sync_handle;
  int32_t num_task;
};
using Task = int (*)(int task, Group* group, void* data);

constexpr int kPiecesPerThread = 4;
constexpr int kLooksBeforeSleep = 100;

struct Loop {
  Task task;
  void* data;
  int pieces;
  std::atomic<int> next{0};
  std::atomic<int> done{0};
  std::mutex mutex;
  TVMFFIObjectHandle error = nullptr;  // the first one, moved here from the thread that raised it

  void Work() {
    Group group{nullptr, pieces};
    for (int piece; (piece = next.fetch_add(1)) < pieces; done.fetch_add(1)) {
      if (task(piece, &group, data) == 0) continue;
      TVMFFIObjectHandle raised = nullptr;
      TVMFFIErrorMoveFromRaised(&raised);
      std::lock_guard<std::mutex> lock(mutex);
      if (error == nullptr) error = raised;
      else TVMFFIObjectDecRef(raised);
    }
  }
};

class Pool {
 public:
  static Pool& Get() {
    static Pool* pool = new Pool();  // never destroyed: its threads run until the process ends
    return *pool;
  }

  int Run(Task task, void* data, int pieces) {
    auto loop = std::make_shared<Loop>();
    loop->task = task;
    loop->data = data;
    loop->pieces = pieces > 0 ? pieces : threads_ == 1 ? 1 : threads_ * kPiecesPerThread;
    if (threads_ > 1 && loop->pieces > 1) {
      std::lock_guard<std::mutex> lock(mutex_);
      loops_.push_back(loop);
      waiting_.fetch_add(1);
      wake_.notify_all();
    }
    loop->Work();
    Remove(loop);
    while (loop->done.load() < loop->pieces) std::this_thread::yield();  // for pieces that others have begun
    if (loop->error == nullptr) return 0;
    TVMFFIErrorSetRaised(loop->error);
    TVMFFIObjectDecRef(loop->error);
    return -1;
  }

 private:
  Pool() : threads_(CountThreads()) {
    for (int i = 1; i < threads_; ++i) std::thread([this] { Serve(); }).detach();
  }

  void Serve() {
    while (true) {
      for (int i = 0; i < kLooksBeforeSleep && waiting_.load() == 0; ++i) std::this_thread::yield();
      std::shared_ptr<Loop> loop;
      {
        std::unique_lock<std::mutex> lock(mutex_);
        wake_.wait(lock, [this] { return !loops_.empty(); });
        loop = loops_.front();
      }
      loop->Work();
      Remove(loop);
    }
  }

  void Remove(const std::shared_ptr<Loop>& loop) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto found = std::find(loops_.begin(), loops_.end(), loop);
    if (found == loops_.end()) return;
    loops_.erase(found);
    waiting_.fetch_sub(1);
  }

  static int CountThreads() {
    for (const char* name : {"TVM_NUM_THREADS", "OMP_NUM_THREADS"}) {
      const char* value = std::getenv(name);
      if (value != nullptr && std::atoi(value) > 0) return std::atoi(value);
    }
    return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  }

  const int threads_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::shared_ptr<Loop>> loops_;
  std::atomic<int> waiting_{0};
};

int Launch(Task task, void* data, int pieces) { return Pool::Get().Run(task, data, pieces); }

int Barrier(int, Group*) {
  TVMFFIErrorSetRaisedFromCStr("RuntimeError", "barriers in parallel loops are not supported beside tvm_neuron");
  return -1;
}

struct Registration {
  Registration() {
    TVMFFIEnvModRegisterContextSymbol("__TVMBackendParallelLaunch", reinterpret_cast<void*>(Launch));
    TVMFFIEnvModRegisterContextSymbol("__TVMBackendParallelBarrier", reinterpret_cast<void*>(Barrier));
  }
} registration;

}  // namespace
