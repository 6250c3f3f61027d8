// The TVM runtime module of kind "neuron": named byte strings (NEFFs, the manifest), whose functions Python provides.
//
// Function `<symbol>` is what the Python function `tvm_neuron.runtime.load` makes of the NEFF stored under it; the
// entry "__factory__", if present, names a function that Python's `tvm_neuron.runtime.factory` provides.
//
// The module keeps neither: TVM holds a module that was loaded from a file until the process ends, and a program in
// memory should go with the last virtual machine that asked for it. Python gives the same one to all of them.

#include <tvm/ffi/cast.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <atomic>
#include <cstring>
#include <string>

namespace ffi = tvm::ffi;

namespace {

using Entries = ffi::Map<ffi::String, ffi::Bytes>;

class NeuronModule : public ffi::ModuleObj {
 public:
  explicit NeuronModule(Entries entries) : entries_(std::move(entries)), id_(next_id_.fetch_add(1)) {}

  const char* kind() const final { return "neuron"; }
  int GetPropertyMask() const final { return ffi::Module::kBinarySerializable | ffi::Module::kRunnable; }
  const Entries& entries() const { return entries_; }

  bool ImplementsFunction(const ffi::String& name) final { return IsFactory(name) || IsProgram(name); }

  ffi::Optional<ffi::Function> GetFunction(const ffi::String& name) final {
    if (IsFactory(name)) {
      auto make = ffi::Function::GetGlobalRequired("tvm_neuron.runtime.factory");
      return make(ffi::GetRef<ffi::Module>(this)).cast<ffi::Function>();
    }
    if (!IsProgram(name)) return std::nullopt;
    auto load = ffi::Function::GetGlobalRequired("tvm_neuron.runtime.load");
    auto data = ffi::Function::FromTyped([bytes = entries_.at(name)]() { return bytes; });
    return load(id_, name, data).cast<ffi::Function>();
  }

  // Layout: for each entry the lengths of key and value (8 bytes each, little endian), the key, the value.
  ffi::Bytes SaveToBytes() const final {
    std::string out;
    size_t size = 0;
    for (const auto& [key, value] : entries_) size += 16 + key.size() + value.size();
    out.reserve(size);
    for (const auto& [key, value] : entries_) {
      AppendLength(&out, key.size());
      AppendLength(&out, value.size());
      out.append(key.data(), key.size());
      out.append(value.data(), value.size());
    }
    return ffi::Bytes(std::move(out));
  }

  static ffi::Module LoadFromBytes(const ffi::Bytes& bytes) {
    Entries entries;
    const char* data = bytes.data();
    size_t left = bytes.size();
    while (left > 0) {
      TVM_FFI_CHECK(left >= 16, ValueError) << "neuron module is truncated";
      uint64_t key_size = ReadLength(data), value_size = ReadLength(data + 8);
      left -= 16;
      TVM_FFI_CHECK(key_size <= left && value_size <= left - key_size, ValueError) << "neuron module is truncated";
      entries.Set(ffi::String(data + 16, key_size), ffi::Bytes(data + 16 + key_size, value_size));
      data += 16 + key_size + value_size;
      left -= key_size + value_size;
    }
    return Make(entries);
  }

  static ffi::Module Make(const Entries& entries) { return ffi::Module(ffi::make_object<NeuronModule>(entries)); }

  ffi::String InspectSource(const ffi::String& format) const final {
    auto manifest = entries_.Get("__manifest__");
    return manifest ? ffi::String(manifest->data(), manifest->size()) : ffi::String();
  }

 private:
  bool IsFactory(const ffi::String& name) const {
    auto factory = entries_.Get("__factory__");
    return factory && std::string(factory->data(), factory->size()) == std::string(name.data(), name.size());
  }

  bool IsProgram(const ffi::String& name) const {
    return entries_.count(name) && std::string(name.data(), name.size()).rfind("__", 0) != 0;
  }

  static void AppendLength(std::string* out, uint64_t value) {
    for (int i = 0; i < 8; ++i) out->push_back(static_cast<char>(value >> (8 * i)));
  }

  static uint64_t ReadLength(const char* data) {
    uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value |= static_cast<uint64_t>(static_cast<unsigned char>(data[i])) << (8 * i);
    return value;
  }

  Entries entries_;
  const int64_t id_;  // unlike an address never used again
  static inline std::atomic<int64_t> next_id_{0};
};

const NeuronModule* Cast(const ffi::Module& module) {
  TVM_FFI_CHECK(std::string(module->kind()) == "neuron", TypeError) << "not a neuron module";
  return static_cast<const NeuronModule*>(module.operator->());
}

TVM_FFI_STATIC_INIT_BLOCK() {
  namespace refl = ffi::reflection;
  refl::GlobalDef()
      .def("ffi.Module.load_from_bytes.neuron", &NeuronModule::LoadFromBytes)
      .def("tvm_neuron.runtime.make_module", &NeuronModule::Make)
      .def("tvm_neuron.runtime.entry_names",
           [](ffi::Module module) {
             ffi::Array<ffi::String> names;
             for (const auto& [name, value] : Cast(module)->entries()) names.push_back(name);
             return names;
           })
      .def("tvm_neuron.runtime.entry",
           [](ffi::Module module, ffi::String name) { return Cast(module)->entries().at(name); });
}

}  // namespace
