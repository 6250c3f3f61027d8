// chain: elementwise operations one after the other on strided arrays, each element once through memory, on all cores.

#include <cstring>

#include "axes.h"
#include "floats.h"

namespace {

using tvm_neuron::Axis;
using tvm_neuron::Bfloat16;
using tvm_neuron::Float32;
using tvm_neuron::Put;
using tvm_neuron::Places;

constexpr int64_t kBlock = 1024;  // elements on their way through a chain: they stay in the first cache

enum Operation { kAdd, kSubtract, kMultiply, kDivide, kMax, kMin };  // as in chain.py

struct Chain {
  int arrays;             // target, source, and an operand of each operation
  const int* is_bfloat16;  // of each array
  const int* operations;
};

// A part of an array: rows of `count` elements.
struct Block {
  int64_t rows, row_step, count, step;

  bool is_run(int64_t size) const { return step == size && (rows == 1 || row_step == count * size); }
};

// The elements of a block one after the other.
template <typename Element>
VECTORS void Gather(Element* __restrict target, const char* source, Block block) {
  for (; block.rows > 0; --block.rows, source += block.row_step, target += block.count) {
    auto* run = reinterpret_cast<const Element*>(source);
    if (block.step == sizeof(Element)) {
      std::memcpy(target, run, block.count * sizeof(Element));
    } else if (block.step == 0) {
      std::fill_n(target, block.count, *run);
    } else if (block.step == 2 * sizeof(Element)) {  // every other one, as windows of convolutions and pools have it
      for (int64_t i = 0; i < block.count; ++i) target[i] = run[2 * i];
    } else {
      for (int64_t i = 0; i < block.count; ++i) target[i] = *reinterpret_cast<const Element*>(source + i * block.step);
    }
  }
}

template <typename Element>
void Scatter(char* target, const Element* source, Block block) {
  for (; block.rows > 0; --block.rows, target += block.row_step, source += block.count) {
    if (block.step == sizeof(Element)) {
      std::memcpy(target, source, block.count * sizeof(Element));
    } else {
      for (int64_t i = 0; i < block.count; ++i) *reinterpret_cast<Element*>(target + i * block.step) = source[i];
    }
  }
}

template <typename Target, typename Source>
VECTORS void Convert(Target* __restrict target, const Source* __restrict source, int64_t count) {
  for (int64_t i = 0; i < count; ++i) Put(target[i], source[i]);
}

// As NumPy has them: NaN wins, and of zeros the second one.
inline float Max(float a, float b) { return a != a || a > b ? a : b; }
inline float Min(float a, float b) { return a != a || a < b ? a : b; }

VECTORS void WithNumber(int operation, float* __restrict to, const float* __restrict x, float y, int64_t count) {
  switch (operation) {
    case kAdd: for (int64_t i = 0; i < count; ++i) to[i] = x[i] + y; break;
    case kSubtract: for (int64_t i = 0; i < count; ++i) to[i] = x[i] - y; break;
    case kMultiply: for (int64_t i = 0; i < count; ++i) to[i] = x[i] * y; break;
    case kDivide: for (int64_t i = 0; i < count; ++i) to[i] = x[i] / y; break;
    case kMax: for (int64_t i = 0; i < count; ++i) to[i] = Max(x[i], y); break;
    case kMin: for (int64_t i = 0; i < count; ++i) to[i] = Min(x[i], y); break;
  }
}

VECTORS void WithArray(int operation, float* __restrict to, const float* __restrict x, const float* __restrict y, int64_t count) {
  switch (operation) {
    case kAdd: for (int64_t i = 0; i < count; ++i) to[i] = x[i] + y[i]; break;
    case kSubtract: for (int64_t i = 0; i < count; ++i) to[i] = x[i] - y[i]; break;
    case kMultiply: for (int64_t i = 0; i < count; ++i) to[i] = x[i] * y[i]; break;
    case kDivide: for (int64_t i = 0; i < count; ++i) to[i] = x[i] / y[i]; break;
    case kMax: for (int64_t i = 0; i < count; ++i) to[i] = Max(x[i], y[i]); break;
    case kMin: for (int64_t i = 0; i < count; ++i) to[i] = Min(x[i], y[i]); break;
  }
}

// The values of a block of an array: where they lie, or in `room`.
const float* Values(const char* place, bool is_bfloat16, const Block& block, float* room) {
  if (is_bfloat16) {
    Bfloat16 bits[kBlock];
    Gather(bits, place, block);
    Convert(reinterpret_cast<Float32*>(room), bits, block.rows * block.count);
    return room;
  }
  if (block.is_run(sizeof(float))) return reinterpret_cast<const float*>(place);
  Gather(reinterpret_cast<Float32*>(room), place, block);
  return room;
}

void RunBlock(const Chain& chain, const Places& places, const Axis& outer, const Axis& inner, int64_t rows,
              int64_t count) {
  alignas(64) float rooms[3][kBlock];
  auto values = [&](int array, float* room) {
    return Values(places[array], chain.is_bfloat16[array], {rows, outer.steps[array], count, inner.steps[array]}, room);
  };
  const float* found = values(1, rooms[0]);
  for (int array = 2; array < chain.arrays; ++array) {
    int operation = chain.operations[array - 2];
    float* next = rooms[array % 2];
    if (inner.steps[array] == 0 && (outer.steps[array] == 0 || rows == 1)) {
      float number = *Values(places[array], chain.is_bfloat16[array], {1, 0, 1, 0}, rooms[2]);
      WithNumber(operation, next, found, number, rows * count);
    } else {
      WithArray(operation, next, found, values(array, rooms[2]), rows * count);
    }
    found = next;
  }
  const Block block{rows, outer.steps[0], count, inner.steps[0]};
  auto* bits = reinterpret_cast<const Float32*>(found);
  if (!chain.is_bfloat16[0]) return Scatter(places[0], bits, block);
  Bfloat16 narrow[kBlock];
  Convert(narrow, bits, rows * count);
  Scatter(places[0], narrow, block);
}

Places Moved(const Chain& chain, Places places, const Axis& axis, int64_t turns) {
  for (int i = 0; i < chain.arrays; ++i) places[i] += turns * axis.steps[i];
  return places;
}

// The two innermost axes in blocks, the others in turns.
void Walk(const Chain& chain, const Places& places, const Axis* axes, size_t rank) {
  if (rank > 2) {
    for (int64_t i = 0; i < axes->count; ++i) Walk(chain, Moved(chain, places, *axes, i), axes + 1, rank - 1);
    return;
  }
  const Axis single{1, {}}, &outer = rank == 2 ? axes[0] : single, &inner = axes[rank - 1];
  int64_t count = std::min(inner.count, kBlock), rows = kBlock / count;
  for (int64_t row = 0; row < outer.count; row += rows) {
    Places there = Moved(chain, places, outer, row);
    for (int64_t at = 0; at < inner.count; at += count) {
      RunBlock(chain, Moved(chain, there, inner, at), outer, inner, std::min(rows, outer.count - row),
               std::min(count, inner.count - at));
    }
  }
}

}  // namespace

// target[...] = (source op[0] operand[0]) op[1] ...: each operation in float32, the last result rounded to the target's
// dtype. `places` are those of the target, the source and the operands, `is_bfloat16` (instead of float32) of each; `sizes` are
// the shape and the steps in bytes of each array, 0 along axes that repeat it. The target shares no byte with the others, or
// has the same steps where it does. Returns 1.
extern "C" __attribute__((visibility("default"))) int tvm_neuron_chain(
    char* const* places, const int* is_bfloat16, int arrays, const int* operations, int rank, const int64_t* sizes) {
  std::vector<Axis> all;
  for (int axis = 0; axis < rank; ++axis) {
    if (sizes[axis] == 1) continue;
    all.push_back({sizes[axis], {}});
    for (int i = 0; i < arrays; ++i) all.back().steps[i] = sizes[(i + 1) * rank + axis];
  }
  Places begin{};
  std::copy(places, places + arrays, begin.begin());
  Chain chain{arrays, is_bfloat16, operations};
  tvm_neuron::Share(tvm_neuron::Simplify(std::move(all), arrays), begin, arrays,
                    [&](const std::vector<Axis>& axes, const Places& there) {
                      Walk(chain, there, axes.data(), axes.size());
                    });
  return 1;
}
