"""What each call of the language computes: arguments in, a `Result` that writes its tile out.

Shapes are [P, *N]: the first axis is the partitions. Every function raises KernelError for what it can't take.
"""

from tvm_neuron.nki.calls.chosen import COMPARISONS, LOGICAL, binary, inverted, loop_reduce, rounded, select, unary
from tvm_neuron.nki.calls.patterned import affine_select, affine_select_into, iota, iota_into
from tvm_neuron.nki.calls.pointwise import (
    activation,
    activation_reduce,
    in_sbuf,
    memset,
    reciprocal,
    scalar_tensor_tensor,
    tensor_copy,
    tensor_scalar,
    tensor_scalar_reduce,
    tensor_tensor,
    tensor_tensor_scan,
)
from tvm_neuron.nki.calls.products import (
    broadcast_to,
    matmul,
    nc_matmul,
    nc_transpose,
    partition_sum,
)
from tvm_neuron.nki.calls.reductions import bn_aggr, bn_stats, tensor_reduce
from tvm_neuron.nki.calls.searches import (
    copy_predicated,
    find_index8,
    local_gather,
    match_replace8,
    max8,
    range_select,
    select_reduce,
    stream_shuffle,
)
from tvm_neuron.nki.calls.transfers import dma_copy, load, store
from tvm_neuron.nki.calls.transposed import load_transposed

__all__ = [
    "COMPARISONS",
    "LOGICAL",
    "activation",
    "activation_reduce",
    "affine_select",
    "affine_select_into",
    "binary",
    "bn_aggr",
    "bn_stats",
    "broadcast_to",
    "copy_predicated",
    "dma_copy",
    "find_index8",
    "in_sbuf",
    "inverted",
    "iota",
    "iota_into",
    "load",
    "load_transposed",
    "local_gather",
    "loop_reduce",
    "match_replace8",
    "matmul",
    "max8",
    "memset",
    "nc_matmul",
    "nc_transpose",
    "partition_sum",
    "range_select",
    "reciprocal",
    "rounded",
    "scalar_tensor_tensor",
    "select",
    "select_reduce",
    "store",
    "stream_shuffle",
    "tensor_copy",
    "tensor_reduce",
    "tensor_scalar",
    "tensor_scalar_reduce",
    "tensor_tensor",
    "tensor_tensor_scan",
    "unary",
]
