// The functions that a tape can hold; what they do stands with each.

#ifndef TVM_NEURON_NATIVE_CALLS_H_
#define TVM_NEURON_NATIVE_CALLS_H_

#include <cstdint>

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED int tvm_neuron_assign(char* target, int target_is_bfloat16, int rank, char* source, int source_is_bfloat16,
                               int source_rank, const int64_t* sizes);
EXPORTED int tvm_neuron_add_products(float* total, int64_t batch, int64_t m, int64_t n, int64_t k, int rank,
                                     const int64_t* counts, const char* left_data, const int64_t* left_steps,
                                     int64_t left_row, const char* right_data, const int64_t* right_steps,
                                     int64_t right_row, int fresh);

#endif  // TVM_NEURON_NATIVE_CALLS_H_
