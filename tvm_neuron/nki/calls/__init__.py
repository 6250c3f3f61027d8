"""What each call of the language computes: arguments in, a `Result` that writes its tile out.

Shapes are [P, *N]: the first axis is the partitions. Every function raises KernelError for what it can't take.
"""

from tvm_neuron.nki.calls.chosen import COMPARISONS, binary, loop_reduce, select, unary
from tvm_neuron.nki.calls.pointwise import (
    activation,
    activation_reduce,
    memset,
    reciprocal,
    scalar_tensor_tensor,
    tensor_copy,
    tensor_scalar,
    tensor_scalar_reduce,
    tensor_tensor,
    tensor_tensor_scan,
)
from tvm_neuron.nki.calls.products import broadcast_to, in_sbuf, matmul, nc_matmul, nc_transpose
from tvm_neuron.nki.calls.reductions import tensor_reduce
from tvm_neuron.nki.calls.transfers import dma_copy, load, store

__all__ = [
    "COMPARISONS", "activation", "activation_reduce", "binary", "broadcast_to", "dma_copy", "in_sbuf", "load",
    "loop_reduce", "matmul", "memset", "nc_matmul", "nc_transpose", "reciprocal", "scalar_tensor_tensor", "select",
    "store", "tensor_copy", "tensor_reduce", "tensor_scalar", "tensor_scalar_reduce", "tensor_tensor",
    "tensor_tensor_scan", "unary",
]  # fmt: skip
