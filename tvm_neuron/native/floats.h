// The two formats of numbers, as bits, and what becomes of a value that goes from one to the other.

#ifndef TVM_NEURON_NATIVE_FLOATS_H_
#define TVM_NEURON_NATIVE_FLOATS_H_

#include <cstdint>

namespace tvm_neuron {

using Float32 = uint32_t;
using Bfloat16 = uint16_t;

inline void Put(Float32& target, Float32 source) { target = source; }
inline void Put(Bfloat16& target, Bfloat16 source) { target = source; }
inline void Put(Float32& target, Bfloat16 source) { target = static_cast<Float32>(source) << 16; }
inline void Put(Bfloat16& target, Float32 source) {  // to the nearest, ties to even; NaN stays NaN
  uint32_t rounded = (source + 0x7fff + (source >> 16 & 1)) >> 16;
  uint32_t nan = (source >> 16 & 0x8000) | 0x7fc0;
  target = static_cast<Bfloat16>((source & 0x7fffffff) > 0x7f800000 ? nan : rounded);
}

}  // namespace tvm_neuron

#endif  // TVM_NEURON_NATIVE_FLOATS_H_
