// assign: copies a strided array into another one, between float32 and bfloat16, on all cores.

#include <cstring>
#include <type_traits>

#include "axes.h"
#include "calls.h"
#include "floats.h"

namespace {

using tvm_neuron::Axis;
using tvm_neuron::Bfloat16;
using tvm_neuron::Float32;
using tvm_neuron::Put;

// Neighbours to neighbours: what a compiler makes vectors of.
template <typename Target, typename Source>
VECTORS void Run(Target* __restrict target, const Source* __restrict source, int64_t count) {
  for (int64_t i = 0; i < count; ++i) Put(target[i], source[i]);
}

template <typename Target, typename Source>
void Row(char* target, const char* source, const Axis& axis) {
  if (axis.steps[0] == sizeof(Target) && axis.steps[1] == sizeof(Source)) {
    if (std::is_same<Target, Source>::value) std::memcpy(target, source, axis.count * sizeof(Target));
    else Run(reinterpret_cast<Target*>(target), reinterpret_cast<const Source*>(source), axis.count);
    return;
  }
  for (int64_t i = 0; i < axis.count; ++i, target += axis.steps[0], source += axis.steps[1]) {
    Put(*reinterpret_cast<Target*>(target), *reinterpret_cast<const Source*>(source));
  }
}

template <typename Target, typename Source>
void Rows(char* target, const char* source, const Axis* axes, size_t rank) {
  if (rank == 1) return Row<Target, Source>(target, source, *axes);
  for (int64_t i = 0; i < axes->count; ++i) {
    Rows<Target, Source>(target + i * axes->steps[0], source + i * axes->steps[1], axes + 1, rank - 1);
  }
}

using Copy = void (*)(char*, const char*, const Axis*, size_t);
constexpr Copy kCopies[2][2] = {  // [target][source], float32 or bfloat16
    {Rows<Float32, Float32>, Rows<Float32, Bfloat16>},
    {Rows<Bfloat16, Float32>, Rows<Bfloat16, Bfloat16>},
};

}  // namespace

// target[...] = source; is_bfloat16 instead of float32. `sizes` are the shape and the steps in bytes of the target, then
// those of the source. The two share no byte. Returns 0, and does nothing, where the source can't be repeated to the
// target's shape.
EXPORTED int tvm_neuron_assign(
    char* target, int target_is_bfloat16, int rank, char* source, int source_is_bfloat16, int source_rank,
    const int64_t* sizes) {
  const int64_t *shape = sizes, *steps = shape + rank, *source_shape = steps + rank;
  const int64_t* source_steps = source_shape + source_rank;
  std::vector<Axis> all;
  for (int i = 0, missing = rank - source_rank; i < rank; ++i) {
    int64_t count = i < missing ? 1 : source_shape[i - missing];
    if (count != 1 && count != shape[i]) return 0;
    if (shape[i] > 1) all.push_back({shape[i], {steps[i], count == 1 ? 0 : source_steps[i - missing]}});
  }
  Copy copy = kCopies[target_is_bfloat16][source_is_bfloat16];
  tvm_neuron::Share(tvm_neuron::Simplify(std::move(all), 2), {target, source}, 2,
                    [&](const std::vector<Axis>& axes, const tvm_neuron::Places& places) {
                      copy(places[0], places[1], axes.data(), axes.size());
                    });
  return 1;
}
