// assign: copies a strided array into another one, between float32 and bfloat16, on all cores.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "pool.h"

// Copies for several processors, of which one is chosen when the library is loaded.
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__)
#define VECTORS __attribute__((target_clones("default", "avx2", "arch=skylake-avx512")))
#else
#define VECTORS
#endif

namespace {

using Float32 = uint32_t;  // as bits, all of them
using Bfloat16 = uint16_t;

inline void Put(Float32& target, Float32 source) { target = source; }
inline void Put(Bfloat16& target, Bfloat16 source) { target = source; }
inline void Put(Float32& target, Bfloat16 source) { target = static_cast<Float32>(source) << 16; }
inline void Put(Bfloat16& target, Float32 source) {  // to the nearest, ties to even; NaN stays NaN
  uint32_t rounded = (source + 0x7fff + (source >> 16 & 1)) >> 16;
  uint32_t nan = (source >> 16 & 0x8000) | 0x7fc0;
  target = static_cast<Bfloat16>((source & 0x7fffffff) > 0x7f800000 ? nan : rounded);
}

struct Axis {
  int64_t count, target, source;  // steps in bytes
};

// Neighbours to neighbours: what a compiler makes vectors of.
template <typename Target, typename Source>
VECTORS void Run(Target* __restrict target, const Source* __restrict source, int64_t count) {
  for (int64_t i = 0; i < count; ++i) Put(target[i], source[i]);
}

template <typename Target, typename Source>
void Row(char* target, const char* source, const Axis& axis) {
  if (axis.target == sizeof(Target) && axis.source == sizeof(Source)) {
    if (std::is_same<Target, Source>::value) std::memcpy(target, source, axis.count * sizeof(Target));
    else Run(reinterpret_cast<Target*>(target), reinterpret_cast<const Source*>(source), axis.count);
    return;
  }
  for (int64_t i = 0; i < axis.count; ++i, target += axis.target, source += axis.source) {
    Put(*reinterpret_cast<Target*>(target), *reinterpret_cast<const Source*>(source));
  }
}

template <typename Target, typename Source>
void Rows(char* target, const char* source, const Axis* axes, size_t rank) {
  if (rank == 1) return Row<Target, Source>(target, source, *axes);
  for (int64_t i = 0; i < axes->count; ++i) {
    Rows<Target, Source>(target + i * axes->target, source + i * axes->source, axes + 1, rank - 1);
  }
}

using Copy = void (*)(char*, const char*, const Axis*, size_t);
constexpr Copy kCopies[2][2] = {  // [target][source], float32 or bfloat16
    {Rows<Float32, Float32>, Rows<Float32, Bfloat16>},
    {Rows<Bfloat16, Float32>, Rows<Bfloat16, Bfloat16>},
};

constexpr int64_t kElemsOfPiece = 1 << 15;  // takes some 10 microseconds
constexpr int64_t kPiecesPerThread = 2;

// The axes with the smallest steps of the target innermost, joined where one goes on where another ends.
std::vector<Axis> Simplify(std::vector<Axis> axes) {
  std::stable_sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) { return a.target > b.target; });
  std::vector<Axis> joined;
  for (const Axis& axis : axes) {
    if (!joined.empty() && joined.back().target == axis.target * axis.count &&
        joined.back().source == axis.source * axis.count) {
      joined.back() = {joined.back().count * axis.count, axis.target, axis.source};
    } else {
      joined.push_back(axis);
    }
  }
  if (joined.empty()) joined.push_back({1, 0, 0});
  return joined;
}

}  // namespace

// target[...] = source; is_bfloat16 instead of float32. `sizes` are the shape and the steps in bytes of the target, then
// those of the source. The two share no byte. Returns 0, and does nothing, where the source can't be repeated to the
// target's shape.
extern "C" __attribute__((visibility("default"))) int tvm_neuron_assign(
    char* target, int target_is_bfloat16, int rank, const char* source, int source_is_bfloat16, int source_rank,
    const int64_t* sizes) {
  const int64_t *shape = sizes, *steps = shape + rank, *source_shape = steps + rank;
  const int64_t* source_steps = source_shape + source_rank;
  std::vector<Axis> all;
  for (int i = 0, missing = rank - source_rank; i < rank; ++i) {
    int64_t count = i < missing ? 1 : source_shape[i - missing];
    if (count != 1 && count != shape[i]) return 0;
    if (shape[i] > 1) all.push_back({shape[i], steps[i], count == 1 ? 0 : source_steps[i - missing]});
  }
  std::vector<Axis> axes = Simplify(std::move(all));
  Copy copy = kCopies[target_is_bfloat16][source_is_bfloat16];
  int64_t elems = 1;
  for (const Axis& axis : axes) elems *= axis.count;
  auto longest = std::max_element(  // of the two outermost ones, the one to share out
      axes.begin(), axes.begin() + std::min<size_t>(2, axes.size()),
      [](const Axis& a, const Axis& b) { return a.count < b.count; });
  size_t shared = longest - axes.begin();
  const Axis whole = *longest;
  tvm_neuron::Pool& pool = tvm_neuron::Pool::Get();
  int64_t most = std::min({elems / kElemsOfPiece, whole.count, kPiecesPerThread * pool.threads()});
  if (pool.threads() == 1 || most < 2) {
    copy(target, source, axes.data(), axes.size());
    return 1;
  }
  pool.Run(static_cast<int>(most), [&](int piece) {
    int64_t start = whole.count * piece / most;
    std::vector<Axis> mine = axes;
    mine[shared].count = whole.count * (piece + 1) / most - start;
    copy(target + start * whole.target, source + start * whole.source, mine.data(), mine.size());
  });
  return 1;
}
