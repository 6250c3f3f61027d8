// tvm_neuron.runtime.blas.matmul: products of matrices by NumPy's BLAS, shared out to the threads of parallel loops.

#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/reflection/registry.h>

#include <algorithm>
#include <vector>

#include "../native/pool.h"
#include "blas.h"

namespace ffi = tvm::ffi;

namespace {

constexpr int64_t kProductsOfPiece = 1 << 20;  // multiplications: some 15 microseconds
constexpr int64_t kPiecesPerThread = 2;        // with more than one, the next can take over from one that is late
constexpr int64_t kEdge = 16;                  // parts of a matrix are whole vectors of the processor

// One operand: matrices of `size` elements, chosen by the leading axes of the result.
struct Operand {
  const char* data;
  int64_t size;
  std::vector<int64_t> steps;  // in matrices; 0 along an axis that repeats them

  Operand(const ffi::TensorView& tensor, int64_t size, int rank)
      : data(static_cast<const char*>(tensor.data_ptr())), size(size), steps(rank, 0) {
    int64_t step = 1;
    for (int axis = 1; axis <= rank && axis <= tensor.ndim() - 2; ++axis) {
      int64_t count = tensor.size(-2 - axis);
      if (count != 1) steps[rank - axis] = step;
      step *= count;
    }
  }

  bool IsOne() const {
    return std::all_of(steps.begin(), steps.end(), [](int64_t step) { return step == 0; });
  }

  template <typename T>
  const T* At(int64_t number, const std::vector<int64_t>& counts) const {
    int64_t matrix = 0;
    for (size_t axis = counts.size(); axis-- > 0; number /= counts[axis]) matrix += number % counts[axis] * steps[axis];
    return reinterpret_cast<const T*>(data) + matrix * size;
  }
};

// Where part `part` of `parts` begins.
int64_t Edge(int64_t size, int64_t part, int64_t parts) {
  return part == parts ? size : size * part / parts / kEdge * kEdge;
}

template <typename T>
void Multiply(const ffi::TensorView& a, const ffi::TensorView& b, const ffi::TensorView& out) {
  int64_t k = a.size(-1), m = a.ndim() > 1 ? a.size(-2) : 1, n = b.ndim() > 1 ? b.size(-1) : 1;
  int rank = out.ndim() - (a.ndim() > 1) - (b.ndim() > 1);
  Operand left(a, m * k, rank), right(b, k * n, rank);
  std::vector<int64_t> counts(out.shape().begin(), out.shape().begin() + rank);
  int64_t number = 1;
  for (int64_t count : counts) number *= count;
  if (right.IsOne() && a.numel() == number * m * k) {  // one product of all rows
    m *= number;
    number = 1;
    counts.clear();
  }
  if (number * m * n == 0) return;
  tvm_neuron::Pool& pool = tvm_neuron::Pool::Get();
  int64_t most = pool.threads() == 1 ? 1 : kPiecesPerThread * pool.threads();
  int64_t pieces = std::clamp<int64_t>(number * m * n * k / kProductsOfPiece, 1, most);
  bool is_by_columns = n > m;  // each part of a matrix lays out all of the other operand for itself
  int64_t longest = is_by_columns ? n : m;
  int64_t parts = std::clamp<int64_t>(longest / kEdge, 1, (pieces + number - 1) / number);
  int64_t units = number * parts;
  pieces = std::min(pieces, units);
  T* to = static_cast<T*>(out.data_ptr());
  tvm_neuron::OneThread one;
  pool.Run(static_cast<int>(pieces), [&](int piece) {
    for (int64_t unit = units * piece / pieces; unit < units * (piece + 1) / pieces; ++unit) {
      int64_t matrix = unit / parts, begin = Edge(longest, unit % parts, parts);
      int64_t length = Edge(longest, unit % parts + 1, parts) - begin;
      int64_t row = is_by_columns ? 0 : begin, rows = is_by_columns ? m : length;
      int64_t column = is_by_columns ? begin : 0, columns = is_by_columns ? length : n;
      tvm_neuron::Blas<T>::Product(rows, columns, k, left.At<T>(matrix, counts) + row * k, k,
                                   right.At<T>(matrix, counts) + column, n, to + (matrix * m + row) * n + column, n);
    }
  });
}

// out = a @ b, as ONNX and NumPy define it; compact tensors, all float32 or all float64.
void Matmul(ffi::TensorView a, ffi::TensorView b, ffi::TensorView out) {
  TVM_FFI_CHECK(a.IsContiguous() && b.IsContiguous() && out.IsContiguous(), ValueError) << "tensors must be compact";
  if (out.dtype().bits == 64) Multiply<double>(a, b, out);
  else Multiply<float>(a, b, out);
}

TVM_FFI_STATIC_INIT_BLOCK() {
  tvm::ffi::reflection::GlobalDef()
      .def("tvm_neuron.runtime.blas.matmul", Matmul)
      .def("tvm_neuron.runtime.blas.use", [](int64_t sgemm, int64_t sgemv, int64_t dgemm, int64_t dgemv, int64_t get,
                                             int64_t set) {
        tvm_neuron::Blas<float>::Use(sgemm, sgemv);
        tvm_neuron::Blas<double>::Use(dgemm, dgemv);
        tvm_neuron::OneThread::Use(get, set);
      });
}

}  // namespace
