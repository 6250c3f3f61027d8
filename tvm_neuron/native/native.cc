// The version of the functions in this library, which Python compares before it calls any.

extern "C" __attribute__((visibility("default"))) int tvm_neuron_native_interface() { return 6; }
