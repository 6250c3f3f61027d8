// Runs a compiled library from C++: a float32 input from a file, its first output to a file.
//
//   ./run_model model.so input.bin output.bin 4 64
//
// The numbers after the files are the input's shape. TVM's runtime loads the library. The hardware model is written in
// Python, so the program starts an interpreter, which imports the runtime half of tvm_neuron and nothing of the compiler.

#include <Python.h>  // first: it sets macros for the system's headers

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/function.h>

namespace ffi = tvm::ffi;

namespace {

struct HostMemory {
  void AllocData(DLTensor* tensor) { tensor->data = std::aligned_alloc(64, (ffi::GetDataSize(*tensor) + 63) / 64 * 64); }
  void FreeData(DLTensor* tensor) { std::free(tensor->data); }
};

constexpr DLDataType kFloat32{kDLFloat, 32, 1};
constexpr DLDevice kHost{kDLCPU, 0};
constexpr int kPooledAllocator = 2;

ffi::Tensor ReadTensor(const std::string& path, const std::vector<int64_t>& shape) {
  ffi::Tensor tensor = ffi::Tensor::FromNDAlloc(HostMemory(), ffi::Shape(shape), kFloat32, kHost);
  std::ifstream file(path, std::ios::binary);
  const auto size = static_cast<std::streamsize>(ffi::GetDataSize(tensor));
  if (!file.read(static_cast<char*>(tensor.data_ptr()), size)) {
    throw std::runtime_error(path + " does not hold " + std::to_string(size) + " bytes");
  }
  return tensor;
}

void WriteTensor(const std::string& path, const ffi::Tensor& tensor) {
  std::ofstream file(path, std::ios::binary);
  const auto size = static_cast<std::streamsize>(ffi::GetDataSize(tensor));
  if (!file.write(static_cast<const char*>(tensor.data_ptr()), size)) {
    throw std::runtime_error(path + " can't be written");
  }
}

ffi::Function Find(const ffi::Module& module, const char* name) {
  if (auto found = module->GetFunction(name)) return *found;
  throw std::runtime_error(std::string("the library has no function ") + name);
}

// What relay.build makes has a factory for Python around the virtual machine's module; tvm.compile makes that alone.
ffi::Module LoadMachine(const char* path) {
  // a name without a slash would be looked for among the system's libraries
  ffi::Module library = ffi::Module::LoadFromFile(std::filesystem::absolute(path).string());
  if (!library->GetFunction("vm_load_executable")) library = library->imports()[0].cast<ffi::Module>();
  ffi::Module machine = Find(library, "vm_load_executable")().cast<ffi::Module>();
  Find(machine, "vm_initialization")(static_cast<int>(kDLCPU), 0, kPooledAllocator);
  return machine;
}

void Run(int argc, char** argv) {
  std::vector<int64_t> shape;
  for (int at = 4; at < argc; ++at) shape.push_back(std::stoll(argv[at]));
  ffi::Module machine = LoadMachine(argv[1]);
  ffi::Any result = Find(machine, "main")(ReadTensor(argv[2], shape));
  if (auto several = result.try_cast<ffi::Array<ffi::Tensor>>()) {
    WriteTensor(argv[3], (*several)[0]);
  } else {
    WriteTensor(argv[3], result.cast<ffi::Tensor>());
  }
}

// The interpreter of the environment that the program was built with, which has tvm_neuron among its packages.
bool StartPython() {
  PyConfig config;
  PyConfig_InitPythonConfig(&config);
  config.install_signal_handlers = 0;
  PyStatus status = PyConfig_SetBytesString(&config, &config.program_name, PYTHON_EXECUTABLE);
  if (!PyStatus_Exception(status)) status = Py_InitializeFromConfig(&config);
  PyConfig_Clear(&config);
  if (PyStatus_Exception(status)) std::fprintf(stderr, "Python can't be started: %s\n", status.err_msg);
  return !PyStatus_Exception(status);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fprintf(stderr, "usage: %s LIBRARY.so INPUT OUTPUT SIZE ...\n", argv[0]);
    return 2;
  }
  if (!StartPython() || PyRun_SimpleString("import tvm_neuron.runtime") != 0) return 1;
  PyThreadState* state = PyEval_SaveThread();  // TVM takes the interpreter's lock when it calls the hardware model
  int status = 0;
  try {
    Run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    status = 1;
  }
  PyEval_RestoreThread(state);
  std::fflush(nullptr);
  std::_Exit(status);  // without the destructors of TVM's and Python's globals, which need each other
}
