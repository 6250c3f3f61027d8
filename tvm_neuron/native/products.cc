// products: many matrix products, each thread with its part of the sums.

#include <algorithm>
#include <cstdint>

#include "calls.h"
#include "multiply.h"
#include "pool.h"

namespace {

constexpr int64_t kProductsOfPiece = 1 << 21;  // multiplications: some 30 microseconds
constexpr int64_t kEdge = 32;  // parts of a matrix are whole vectors of the processor

struct Operand {
  const char* data;
  const int64_t* steps;  // in bytes, of the axes before the matrix
  int64_t row;           // from one row of a matrix to the next one, in floats

  // Matrix `number`, in the order of the leading axes.
  tvm_neuron::Side At(int64_t number, int rank, const int64_t* counts, int64_t column) const {
    const char* place = data;
    for (int axis = rank - 1; axis >= 0; number /= counts[axis--]) place += number % counts[axis] * steps[axis];
    return {reinterpret_cast<const float*>(place) + column, row, 0};
  }
};

// Where piece `piece` of `pieces` begins.
int64_t Edge(int64_t size, int64_t piece, int64_t pieces) {
  return piece == pieces ? size : size * piece / pieces / kEdge * kEdge;
}

}  // namespace

// total[batch, m, n] = (fresh ? 0 : total) + left[0].T @ right[0] + left[batch].T @ right[batch] + ..., in this order;
// left and right hold matrices [k, m] and [k, n] in `rank` axes of these counts. Returns 1.
EXPORTED int tvm_neuron_add_products(
    float* total, int64_t batch, int64_t m, int64_t n, int64_t k, int rank, const int64_t* counts,
    const char* left_data, const int64_t* left_steps, int64_t left_row, const char* right_data,
    const int64_t* right_steps, int64_t right_row, int fresh) {
  const Operand left{left_data, left_steps, left_row}, right{right_data, right_steps, right_row};
  int64_t count = 1;
  for (int axis = 0; axis < rank; ++axis) count *= counts[axis];
  static const tvm_neuron::Multiply multiply = tvm_neuron::FindMultiply();
  auto part = [&](int64_t first, int64_t end, int64_t row, int64_t rows, int64_t column, int64_t columns) {
    for (int64_t number = 0; number < count; ++number) {
      int64_t item = number % batch;
      if (item < first || item >= end) continue;
      multiply(rows, columns, k, left.At(number, rank, counts, row), right.At(number, rank, counts, column),
               {total + (item * m + row) * n + column, n, 1, fresh && number < batch});
    }
  };
  tvm_neuron::Pool& pool = tvm_neuron::Pool::Get();
  int64_t longest = batch > 1 ? batch : std::max(m, n) / kEdge;
  // No more than there are threads: each piece rearranges all of the other operand.
  int64_t pieces = std::min<int64_t>({count * m * n * k / kProductsOfPiece, longest, pool.threads()});
  if (pool.threads() == 1 || pieces < 2) {
    part(0, batch, 0, m, 0, n);
    return 1;
  }
  pool.Run(static_cast<int>(pieces), [&](int piece) {
    if (batch > 1) return part(batch * piece / pieces, batch * (piece + 1) / pieces, 0, m, 0, n);
    int64_t start = Edge(std::max(m, n), piece, pieces), end = Edge(std::max(m, n), piece + 1, pieces);
    if (n >= m) part(0, 1, 0, m, start, end - start);
    else part(0, 1, start, end - start, 0, n);
  });
  return 1;
}
