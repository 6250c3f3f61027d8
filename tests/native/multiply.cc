// Products by the code for each kind of processor that this one is, beside sums one by one; prints what differs.

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "multiply.h"

using tvm_neuron::Multiply;

// Of 16 bits, as products of which are exact: fused or not, sums have the same bits.
static float Random() {
  const float number = std::rand() / (RAND_MAX / 2.0f) - 1.0f;
  uint32_t bits;
  std::memcpy(&bits, &number, sizeof bits);
  bits &= 0xffff0000u;
  float found;
  std::memcpy(&found, &bits, sizeof found);
  return found;
}

static int Differing(const char* name, Multiply multiply) {
  int differing = 0;
  for (int64_t m : {1, 2, 5, 6, 7, 13, 14, 64, 100}) {
    for (int64_t n : {1, 2, 7, 8, 9, 31, 32, 33, 100, 600}) {
      for (int64_t k : {1, 3, 128}) {
        const int64_t left_row = m + 3, right_row = n + 5, row = n + 2;
        std::vector<float> left(k * left_row), right(k * right_row), found(m * row), wanted;
        for (auto* side : {&left, &right, &found})
          for (float& number : *side) number = Random();
        wanted = found;
        const bool is_fresh = (m + n) % 2 == 0;
        for (int64_t i = 0; i < m; ++i) {
          for (int64_t j = 0; j < n; ++j) {
            float sum = 0;
            for (int64_t t = 0; t < k; ++t) sum += left[t * left_row + i] * right[t * right_row + j];
            wanted[i * row + j] = is_fresh ? sum : wanted[i * row + j] + sum;
          }
        }
        multiply(m, n, k, {left.data(), left_row, 0}, {right.data(), right_row, 0}, {found.data(), row, 1, is_fresh});
        if (std::memcmp(found.data(), wanted.data(), found.size() * sizeof(float)) == 0) continue;
        std::printf("%s differs: m %d, n %d, k %d\n", name, int(m), int(n), int(k));
        ++differing;
      }
    }
  }
  return differing;
}

int main() {
  int differing = Differing("any", tvm_neuron::any::Multiply);
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    differing += Differing("avx2", tvm_neuron::avx2::Multiply);
  }
  if (__builtin_cpu_supports("avx512f")) differing += Differing("avx512", tvm_neuron::avx512::Multiply);
#endif
  return differing != 0;
}
