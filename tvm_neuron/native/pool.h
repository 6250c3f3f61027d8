// Pool: one set of threads for all parallel loops of a library.
//
// A loop is cut into more pieces than there are threads, each takes the next one when it is done, and the caller never
// waits for a thread that has not begun: one whose processor is busy holds up nothing.

#ifndef TVM_NEURON_NATIVE_POOL_H_
#define TVM_NEURON_NATIVE_POOL_H_

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include "apart.h"

namespace tvm_neuron {

class Pool {
 public:
  static Pool& Get() {
    static Pool* pool = Make();  // never destroyed: its threads run until the process ends
    return *pool;
  }

  int threads() const { return threads_; }

  // task(0) to task(pieces - 1), which must not throw; returns when all are done.
  void Run(int pieces, std::function<void(int)> task) {
    auto loop = std::make_shared<Loop>();
    loop->task = std::move(task);
    loop->pieces = pieces;
    if (threads_ > 1 && pieces > 1) {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!has_begun_) Begin();
      loops_.push_back(loop);
      for (Apart* sleeper : asleep_) sleeper->Leave();
      waiting_.fetch_add(1);
      wake_.notify_all();
    }
    const auto begin = Clock::now();
    loop->Work();
    const auto end = Clock::now();
    Remove(loop);
    while (loop->done.load() < pieces)  // for pieces that others have begun, which take no longer than this thread's
      if (Clock::now() - end > end - begin) std::this_thread::yield();  // may be gone for milliseconds
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr int kLooksBeforeSleep = 1000;

  struct Loop {
    std::function<void(int)> task;
    int pieces;
    std::atomic<int> next{0};
    std::atomic<int> done{0};

    void Work() {
      for (int piece; (piece = next.fetch_add(1)) < pieces; done.fetch_add(1)) task(piece);
    }
  };

  Pool() : threads_(CountThreads()) {}

  // A fork has none of the threads but the one that forks, and may have got the lock of another one: it begins anew.
  static Pool* Make() {
    static Pool* pool = new Pool();
    pthread_atfork(nullptr, nullptr, [] { new (pool) Pool(); });
    return pool;
  }

  void Begin() {
    has_begun_ = true;
    for (int i = 1; i < threads_; ++i) std::thread([this] { Serve(); }).detach();
  }

  void Serve() {
    Apart self;
    while (true) {
      for (int i = 0; i < kLooksBeforeSleep && waiting_.load() == 0; ++i) std::this_thread::yield();
      std::shared_ptr<Loop> loop;
      {
        std::unique_lock<std::mutex> lock(mutex_);
        asleep_.push_back(&self);
        wake_.wait(lock, [this] { return !loops_.empty(); });
        asleep_.erase(std::find(asleep_.begin(), asleep_.end(), &self));
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
  bool has_begun_ = false;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::shared_ptr<Loop>> loops_;
  std::vector<Apart*> asleep_;
  std::atomic<int> waiting_{0};
};

}  // namespace tvm_neuron

#endif  // TVM_NEURON_NATIVE_POOL_H_
