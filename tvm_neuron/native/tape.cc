// tape: calls of this library that were recorded, made again in one go.

#include "calls.h"

namespace {

template <typename T>
T* At(int64_t word) {
  return reinterpret_cast<T*>(word);
}

constexpr int kWords[] = {7, 14};  // of the arguments of each function

}  // namespace

// `words` are the number of a function (0: assign, 1: add_products) and its arguments, and so on; the sums of products
// lie at `sums` instead. Returns 1.
EXPORTED int tvm_neuron_replay(const int64_t* words, int64_t count, float* sums) {
  for (const int64_t* end = words + count; words < end; words += 1 + kWords[*words]) {
    const int64_t* w = words + 1;
    if (*words == 0) {
      tvm_neuron_assign(At<char>(w[0]), w[1], w[2], At<char>(w[3]), w[4], w[5], At<const int64_t>(w[6]));
    } else {
      tvm_neuron_add_products(sums, w[1], w[2], w[3], w[4], w[5], At<const int64_t>(w[6]), At<const char>(w[7]),
                              At<const int64_t>(w[8]), w[9], At<const char>(w[10]), At<const int64_t>(w[11]), w[12],
                              w[13]);
    }
  }
  return 1;
}
