// Parallel loops of the CPU parts, in the place of TVM's: one pool of threads for the whole process.
//
// TVM gives every thread a fixed share and waits for all, so that one which can't begin, because its processor is busy,
// holds up the loop; and each caller has a pool of its own, tied to the same processors. Generated code calls
// TVMBackendParallelLaunch of tvm/runtime/c_backend_api.h through a pointer that is set when a library is loaded.

#include <tvm/ffi/c_api.h>
#include <tvm/ffi/extra/c_env_api.h>

#include <cstdint>
#include <mutex>

#include "../native/pool.h"

namespace {

struct Group {  // TVMParallelGroupEnv
  void* sync_handle;
  int32_t num_task;
};
using Task = int (*)(int task, Group* group, void* data);

constexpr int kPiecesPerThread = 4;

int Launch(Task task, void* data, int pieces) {
  tvm_neuron::Pool& pool = tvm_neuron::Pool::Get();
  if (pieces <= 0) pieces = pool.threads() == 1 ? 1 : pool.threads() * kPiecesPerThread;
  std::mutex mutex;
  TVMFFIObjectHandle error = nullptr;  // the first one, moved here from the thread that raised it
  pool.Run(pieces, [&](int piece) {
    Group group{nullptr, pieces};
    if (task(piece, &group, data) == 0) return;
    TVMFFIObjectHandle raised = nullptr;
    TVMFFIErrorMoveFromRaised(&raised);
    std::lock_guard<std::mutex> lock(mutex);
    if (error == nullptr) error = raised;
    else TVMFFIObjectDecRef(raised);
  });
  if (error == nullptr) return 0;
  TVMFFIErrorSetRaised(error);
  TVMFFIObjectDecRef(error);
  return -1;
}

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
