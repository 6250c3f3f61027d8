// Axes of several arrays that are walked together, and how a walk is shared out to the threads.

#ifndef TVM_NEURON_NATIVE_AXES_H_
#define TVM_NEURON_NATIVE_AXES_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "pool.h"

// Copies for several processors, of which one is chosen when the library is loaded.
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__)
#define VECTORS __attribute__((target_clones("default", "avx2", "arch=skylake-avx512")))
#else
#define VECTORS
#endif

namespace tvm_neuron {

constexpr int kMostArrays = 36;  // the one that is written comes first

struct Axis {
  int64_t count;
  std::array<int64_t, kMostArrays> steps;  // in bytes, of each array
};

using Places = std::array<char*, kMostArrays>;

// The axes with the smallest steps of the first array innermost, joined where one goes on where another ends.
inline std::vector<Axis> Simplify(std::vector<Axis> axes, int arrays) {
  std::stable_sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) { return a.steps[0] > b.steps[0]; });
  std::vector<Axis> joined;
  for (const Axis& axis : axes) {
    bool goes_on = !joined.empty();
    for (int i = 0; goes_on && i < arrays; ++i) goes_on = joined.back().steps[i] == axis.steps[i] * axis.count;
    if (goes_on) {
      int64_t count = joined.back().count * axis.count;
      joined.back() = axis;
      joined.back().count = count;
    } else {
      joined.push_back(axis);
    }
  }
  if (joined.empty()) joined.push_back({1, {}});
  return joined;
}

// walk(axes, places) for all, by parts of the longer one of the two outermost axes on all threads.
template <typename Walk>
void Share(const std::vector<Axis>& axes, const Places& places, int arrays, Walk walk) {
  constexpr int64_t kElemsOfPiece = 1 << 14;  // takes some 5 to 10 microseconds
  constexpr int64_t kPiecesPerThread = 2;
  int64_t elems = 1;
  for (const Axis& axis : axes) elems *= axis.count;
  auto longest = std::max_element(axes.begin(), axes.begin() + std::min<size_t>(2, axes.size()),
                                  [](const Axis& a, const Axis& b) { return a.count < b.count; });
  size_t shared = longest - axes.begin();
  const Axis& whole = *longest;
  Pool& pool = Pool::Get();
  int64_t most = std::min({elems / kElemsOfPiece, whole.count, kPiecesPerThread * pool.threads()});
  if (pool.threads() == 1 || most < 2) return walk(axes, places);
  pool.Run(static_cast<int>(most), [&](int piece) {
    int64_t start = whole.count * piece / most;
    std::vector<Axis> mine = axes;
    mine[shared].count = whole.count * (piece + 1) / most - start;
    Places there = places;
    for (int i = 0; i < arrays; ++i) there[i] += start * whole.steps[i];
    walk(mine, there);
  });
}

}  // namespace tvm_neuron

#endif  // TVM_NEURON_NATIVE_AXES_H_
