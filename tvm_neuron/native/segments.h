// Segments: the cells of one memory in runs that every access takes wholly or not at all.
//
// Programs touch memory in rows of many cells. Marks for each run instead of each cell take as much less memory, which
// a large tensor in DRAM would not leave, and as much less time.

#ifndef TVM_NEURON_NATIVE_SEGMENTS_H_
#define TVM_NEURON_NATIVE_SEGMENTS_H_

#include <cstdint>
#include <vector>

namespace tvm_neuron {

class Segments {
 public:
  explicit Segments(int64_t cells) : starts_(cells / kBits + 1), before_(starts_.size()) {}

  // An access takes `count` cells from `first` on, and perhaps not the ones beside them.
  void Cut(int64_t first, int64_t count) {
    Start(first);
    Start(first + count);
  }

  // To be called after the last cut; the number of segments.
  int64_t Number() {
    int64_t all = 0;
    for (size_t word = 0; word < starts_.size(); ++word) {
      before_[word] = all;
      all += __builtin_popcountll(starts_[word]);
    }
    return all;
  }

  // The segment that starts with a cell at which there is a cut.
  int64_t At(int64_t cell) const {
    const uint64_t below = starts_[cell / kBits] & ((uint64_t{1} << (cell % kBits)) - 1);
    return before_[cell / kBits] + __builtin_popcountll(below);
  }

 private:
  static constexpr int64_t kBits = 64;

  void Start(int64_t cell) { starts_[cell / kBits] |= uint64_t{1} << (cell % kBits); }

  std::vector<uint64_t> starts_;  // a bit for each cell
  std::vector<int64_t> before_;  // of each word, the segments that start before it
};

}  // namespace tvm_neuron

#endif  // TVM_NEURON_NATIVE_SEGMENTS_H_
