// Blas: the functions of NumPy's BLAS, whose addresses Python finds, for row-major matrices of T on the calling thread.

#ifndef TVM_NEURON_RUNTIME_BLAS_H_
#define TVM_NEURON_RUNTIME_BLAS_H_

#include <algorithm>
#include <cstdint>
#include <mutex>

namespace tvm_neuron {

template <typename T>
class Blas {
 public:
  static void Use(int64_t gemm, int64_t gemv) {
    gemm_ = reinterpret_cast<Gemm>(gemm);
    gemv_ = reinterpret_cast<Gemv>(gemv);
  }

  // out[m, n] = left[m, k] @ right[k, n]; the rows of each lie that many elements apart.
  static void Product(int64_t m, int64_t n, int64_t k, const T* left, int64_t left_row, const T* right,
                      int64_t right_row, T* out, int64_t out_row) {
    if (m == 1 || n == 1 || k == 0) {
      for (int64_t i = 0; i < m; ++i) std::fill_n(out + i * out_row, n, T(0));
      if (k == 0) return;
    }
    if (n == 1) gemv_(kRowMajor, kPlain, m, k, 1, left, left_row, right, right_row, 1, out, out_row);
    else if (m == 1) gemv_(kRowMajor, kTransposed, k, n, 1, right, right_row, left, 1, 1, out, 1);
    else gemm_(kRowMajor, kPlain, kPlain, m, n, k, 1, left, left_row, right, right_row, 0, out, out_row);
  }

 private:
  static constexpr int kRowMajor = 101, kPlain = 111, kTransposed = 112;
  using Gemm = void (*)(int, int, int, int64_t, int64_t, int64_t, T, const T*, int64_t, const T*, int64_t, T, T*,
                        int64_t);
  using Gemv = void (*)(int, int, int64_t, int64_t, T, const T*, int64_t, const T*, int64_t, T, T*, int64_t);
  static inline Gemm gemm_ = nullptr;
  static inline Gemv gemv_ = nullptr;
};

// While any of these lives, the BLAS starts no threads of its own: they spin while they wait for each other, which takes
// many times as long as soon as anything else runs on their processors.
class OneThread {
 public:
  static void Use(int64_t get, int64_t set) {
    get_ = reinterpret_cast<int (*)()>(get);
    set_ = reinterpret_cast<void (*)(int)>(set);
  }

  OneThread() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (living_++ > 0) return;
    before_ = get_();
    set_(1);
  }
  ~OneThread() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (--living_ == 0) set_(before_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  static inline int (*get_)() = nullptr;
  static inline void (*set_)(int) = nullptr;
  static inline std::mutex mutex_;
  static inline int living_ = 0, before_ = 1;
};

}  // namespace tvm_neuron

#endif  // TVM_NEURON_RUNTIME_BLAS_H_
