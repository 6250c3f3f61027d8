// tvm_neuron.runtime.checked_positions: positions that are computed at run time, for what gathers on the CPU, counted
// from the start or refused.

#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/reflection/registry.h>
#include <tvm/ffi/string.h>

#include <cstdint>
#include <cstdlib>
#include <vector>

namespace ffi = tvm::ffi;

namespace {

constexpr size_t kAlignment = 64;  // bytes, of every tensor of TVM

struct Memory {
  void AllocData(DLTensor* tensor) {
    size_t size = (ffi::GetDataSize(*tensor) + kAlignment - 1) / kAlignment * kAlignment;
    tensor->data = std::aligned_alloc(kAlignment, size);
    TVM_FFI_CHECK(tensor->data != nullptr || size == 0, MemoryError) << "no memory for " << size << " bytes";
  }
  void FreeData(DLTensor* tensor) { std::free(tensor->data); }
};

template <typename T>
T* Place(const ffi::Tensor& tensor) {
  return static_cast<T*>(tensor.data_ptr());
}

template <typename T>
void Count(const T* given, int64_t size, const std::vector<int64_t>& extents, const ffi::String& what, T* counted) {
  for (int64_t i = 0; i < size; ++i) {
    int64_t extent = extents[i % extents.size()], at = static_cast<int64_t>(given[i]);
    int64_t place = given[i] < 0 ? at + extent : at;
    if (place < 0 || place >= extent)
      TVM_FFI_THROW(PositionError) << what << ": index " << +given[i] << " lies outside of the " << extent
                                   << " elements that it chooses from: give indices from " << -extent << " to "
                                   << extent - 1;
    counted[i] = static_cast<T>(place);
  }
}

// `positions`, of which negative ones count from the end, along dimension `first` of the data; as tuples along that and
// the ones after it. `what` names the operator. Raises PositionError if one lies outside.
ffi::Tensor Checked(ffi::TensorView positions, ffi::TensorView data, ffi::String what, int64_t first, bool are_tuples) {
  TVM_FFI_CHECK(positions.IsContiguous(), ValueError) << "tensors must be compact";
  std::vector<int64_t> extents;
  for (int64_t axis = 0; axis < (are_tuples ? positions.size(-1) : 1); ++axis)
    extents.push_back(data.size(first + axis));
  ffi::Tensor counted = ffi::Tensor::FromNDAlloc(Memory(), positions.shape(), positions.dtype(), positions.device());
  auto count = [&](auto* to) {
    Count(static_cast<decltype(to)>(positions.data_ptr()), positions.numel(), extents, what, to);
  };
  bool is_signed = positions.dtype().code == kDLInt;
  TVM_FFI_CHECK(is_signed || positions.dtype().code == kDLUInt, TypeError) << what << ": positions are integers";
  switch (positions.dtype().bits) {
    case 8: is_signed ? count(Place<int8_t>(counted)) : count(Place<uint8_t>(counted)); break;
    case 16: is_signed ? count(Place<int16_t>(counted)) : count(Place<uint16_t>(counted)); break;
    case 32: is_signed ? count(Place<int32_t>(counted)) : count(Place<uint32_t>(counted)); break;
    default: is_signed ? count(Place<int64_t>(counted)) : count(Place<uint64_t>(counted));
  }
  return counted;
}

TVM_FFI_STATIC_INIT_BLOCK() {
  tvm::ffi::reflection::GlobalDef().def("tvm_neuron.runtime.checked_positions", Checked);
}

}  // namespace
