"""How kernels are described and scheduled: expressions, graphs of blocks, kernels, and the interface of rules."""
