// multiply: a matrix product of which each element has the same bits whatever the sizes, on every processor.
//
// A BLAS adds the elements at the edge of a matrix in another order than those inside it, and not alike on all
// processors. Here each sum takes its k products one by one.

#ifndef TVM_NEURON_NATIVE_MULTIPLY_H_
#define TVM_NEURON_NATIVE_MULTIPLY_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tvm_neuron {

// A matrix [k, columns], seen as panels of some columns.
struct Side {
  const float* data;
  int64_t row;    // from one row to the next one, in floats
  int64_t panel;  // from one panel to the next one

  Side Panel(int64_t number) const { return {data + number * panel, row, 0}; }
};

struct Target {
  float* data;
  int64_t row, column;  // from one to the next one, in floats
  bool is_fresh;        // what is there is forgotten

  float* At(int64_t row_number, int64_t column_number) const {
    return data + row_number * row + column_number * column;
  }
};

// The matrix in panels of `width` columns, the last one filled up with zeros, in `room`.
template <int64_t width>
Side Packed(Side side, int64_t k, int64_t columns, std::vector<float>& room) {
  const int64_t panels = (columns + width - 1) / width;
  if (static_cast<int64_t>(room.size()) < panels * k * width) room.resize(panels * k * width);
  float* to = room.data();
  for (; columns > 0; columns -= width, side.data += width) {
    const float* from = side.data;
    for (int64_t row = 0; row < k; ++row, from += side.row, to += width) {
      if (columns >= width) {
        std::memcpy(to, from, width * sizeof(float));
      } else {
        std::copy(from, from + columns, to);
        std::fill(to + columns, to + width, 0.0f);
      }
    }
  }
  return {room.data(), width, k * width};
}

#if defined(__x86_64__)
#define TILE_NAMESPACE avx512
#define TILE_TARGET __attribute__((target("avx512f")))
#define TILE_FLOATS 16
#define TILE_ROWS 13
#define TILE_ADD_PRODUCT(x, y, sum) (Vector) _mm512_fmadd_ps((__m512)(x), (__m512)(y), (__m512)(sum))
#include "tile.h"
#define TILE_NAMESPACE avx2
#define TILE_TARGET __attribute__((target("avx2,fma")))
#define TILE_FLOATS 8
#define TILE_ROWS 6
#define TILE_ADD_PRODUCT(x, y, sum) (Vector) _mm256_fmadd_ps((__m256)(x), (__m256)(y), (__m256)(sum))
#include "tile.h"
#endif
// Products of two numbers of 16 bits are exact in float32: a product and a sum give the bits of one fused operation.
#define TILE_NAMESPACE any
#define TILE_TARGET
#define TILE_FLOATS 4
#define TILE_ROWS 6
#define TILE_ADD_PRODUCT(x, y, sum) (sum) + (x) * (y)
#include "tile.h"

using Multiply = void (*)(int64_t m, int64_t n, int64_t k, Side left, Side right, Target target);

// The one for this processor.
inline Multiply FindMultiply() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return avx512::Multiply;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return avx2::Multiply;
#endif
  return any::Multiply;
}

}  // namespace tvm_neuron

#endif  // TVM_NEURON_NATIVE_MULTIPLY_H_
