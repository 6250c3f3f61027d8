// tvm_neuron.runtime.blas.convolve: convolutions as products by NumPy's BLAS.
//
// The windows of some places of the result are laid out as the columns of a matrix, few enough that it stays in the
// cache of the core that then multiplies the weights with it.

#include <tvm/ffi/container/shape.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/reflection/registry.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <vector>

#include "../native/pool.h"
#include "blas.h"

namespace ffi = tvm::ffi;

namespace {

constexpr int kRank = 3;  // a convolution over fewer axes has leading ones of size 1
constexpr int64_t kProductsOfPiece = 1 << 20;
constexpr int64_t kPatchBytes = 1 << 20, kFewestColumns = 128;

struct Axis {
  int64_t in = 1, out = 1, window = 1, stride = 1, dilation = 1, pad = 0;

  bool IsPlain() const { return in == out && window == 1 && stride == 1; }
};

// Places of the result that follow each other along the last axis: from (at[0], at[1], at[2]) on.
struct Run {
  int64_t at[kRank], count;
};

std::vector<Run> RunsOf(const Axis* axes, int64_t begin, int64_t end) {
  std::vector<Run> runs;
  while (begin < end) {
    int64_t last = begin % axes[2].out, row = begin / axes[2].out;
    runs.push_back({{row / axes[1].out, row % axes[1].out, last}, std::min(axes[2].out - last, end - begin)});
    begin += runs.back().count;
  }
  return runs;
}

// What the window's element at `shift` from a place's first one reads, for each place of the run; 0 beyond the data.
template <typename T>
T* Read(const Axis* axes, const T* channel, const int64_t* shift, const Run& run, T* to) {
  for (int axis = 0; axis < 2; ++axis) {
    int64_t at = run.at[axis] * axes[axis].stride + shift[axis];
    if (at < 0 || at >= axes[axis].in) return std::fill_n(to, run.count, T(0));
    channel += at * (axis == 0 ? axes[1].in * axes[2].in : axes[2].in);
  }
  int64_t stride = axes[2].stride, first = run.at[2] * stride + shift[2];
  int64_t before = first < 0 ? std::min(run.count, (-first + stride - 1) / stride) : 0;
  int64_t inside = first < axes[2].in ? std::min(run.count, (axes[2].in - first + stride - 1) / stride) : 0;
  inside = std::max(inside, before);
  to = std::fill_n(to, before, T(0));
  if (stride == 1) to = std::copy(channel + first + before, channel + first + inside, to);
  else for (int64_t i = before; i < inside; ++i) *to++ = channel[first + i * stride];
  return std::fill_n(to, run.count - inside, T(0));
}

// The windows of places [begin, end) as columns; rows are the elements of a window, one channel after the other.
template <typename T>
void LayOut(const Axis* axes, const T* data, int64_t channels, int64_t begin, int64_t end, T* to) {
  std::vector<Run> runs = RunsOf(axes, begin, end);
  int64_t size = axes[0].in * axes[1].in * axes[2].in;
  int64_t elements = axes[0].window * axes[1].window * axes[2].window;
  for (int64_t row = 0; row < channels * elements; ++row) {
    int64_t shift[kRank], element = row % elements;
    for (int axis = kRank - 1; axis >= 0; element /= axes[axis--].window)
      shift[axis] = element % axes[axis].window * axes[axis].dilation - axes[axis].pad;
    for (const Run& run : runs) to = Read(axes, data + row / elements * size, shift, run, to);
  }
}

template <typename T>
void Multiply(const ffi::TensorView& data, const ffi::TensorView& weight, const Axis* axes, const ffi::TensorView& out) {
  int64_t channels = weight.size(1), groups = data.size(1) / channels, results = weight.size(0) / groups;
  int64_t places = axes[0].out * axes[1].out * axes[2].out, size = axes[0].in * axes[1].in * axes[2].in;
  int64_t k = weight.numel() / weight.size(0), lists = data.size(0) * groups;
  if (out.numel() == 0) return;
  bool is_plain = std::all_of(axes, axes + kRank, [](const Axis& axis) { return axis.IsPlain(); });
  tvm_neuron::Pool& pool = tvm_neuron::Pool::Get();
  bool is_split = pool.threads() > 1 && out.numel() * k >= 2 * kProductsOfPiece;
  int64_t most = std::max(kFewestColumns, kPatchBytes / std::max<int64_t>(1, k * sizeof(T)));
  int64_t pieces = (places + most - 1) / most, parts = 1;
  if (is_split && places < results) parts = std::min<int64_t>(results, pool.threads());
  else if (is_split) pieces = std::min(places, (pieces + pool.threads() - 1) / pool.threads() * pool.threads());
  const T* from = static_cast<const T*>(data.data_ptr());
  const T* weights = static_cast<const T*>(weight.data_ptr());
  T* to = static_cast<T*>(out.data_ptr());
  std::atomic<bool> is_out_of_memory{false};
  auto task = [&](int64_t number) {
    int64_t piece = number % pieces, part = number / pieces % parts, list = number / pieces / parts;
    int64_t begin = places * piece / pieces, columns = places * (piece + 1) / pieces - begin;
    int64_t row = results * part / parts, rows = results * (part + 1) / parts - row;
    const T* right = from + list * channels * size + begin;
    if (!is_plain) {
      static thread_local std::vector<T> patch;  // kept, because fresh memory costs more than what is written to it
      if (static_cast<int64_t>(patch.size()) < k * columns) patch.resize(k * columns);
      LayOut(axes, from + list * channels * size, channels, begin, begin + columns, patch.data());
      right = patch.data();
    }
    tvm_neuron::Blas<T>::Product(rows, columns, k, weights + (list % groups * results + row) * k, k, right,
                                 is_plain ? places : columns, to + (list * results + row) * places + begin, places);
  };
  tvm_neuron::OneThread one;
  int64_t tasks = lists * parts * pieces;
  int runs = is_split ? static_cast<int>(std::min<int64_t>(tasks, 1 << 20)) : 1;
  pool.Run(runs, [&](int run) {
    try {
      for (int64_t number = tasks * run / runs; number < tasks * (run + 1) / runs; ++number) task(number);
    } catch (const std::bad_alloc&) {
      is_out_of_memory = true;
    }
  });
  TVM_FFI_CHECK(!is_out_of_memory, MemoryError) << "no memory for " << k << " rows of a convolution's windows";
}

// out[n, o] = sum of data[n, c] and weight[o, c] over the windows; one to three spatial axes, compact tensors, all
// float32 or all float64. `pads` are the zeros before each spatial axis and then those after each. The channels of
// `out` are in as many groups as those of `weight` go into those of `data`.
void Convolve(ffi::TensorView data, ffi::TensorView weight, ffi::Shape strides, ffi::Shape dilations, ffi::Shape pads,
              ffi::TensorView out) {
  int rank = data.ndim() - 2;
  TVM_FFI_CHECK(rank >= 1 && rank <= kRank, ValueError) << "a convolution over " << rank << " axes";
  TVM_FFI_CHECK(data.IsContiguous() && weight.IsContiguous() && out.IsContiguous(), ValueError)
      << "tensors must be compact";
  Axis axes[kRank];
  for (int axis = 0; axis < rank; ++axis)
    axes[kRank - rank + axis] = {data.size(2 + axis), out.size(2 + axis), weight.size(2 + axis),
                                 strides[axis],       dilations[axis],    pads[axis]};
  if (out.dtype().bits == 64) Multiply<double>(data, weight, axes, out);
  else Multiply<float>(data, weight, axes, out);
}

TVM_FFI_STATIC_INIT_BLOCK() {
  tvm::ffi::reflection::GlobalDef().def("tvm_neuron.runtime.blas.convolve", Convolve);
}

}  // namespace
