"""simplify: the subgraph as kernels: constants folded, moves read through, layouts chosen, arithmetic fused."""

from collections.abc import Sequence
from dataclasses import replace

from tvm_neuron.codegen.kernels.affine import fold_scale
from tvm_neuron.codegen.kernels.bounce import bounce_through_dram
from tvm_neuron.codegen.kernels.exact_constants import keep_bits
from tvm_neuron.codegen.kernels.fill_first import fill_first
from tvm_neuron.codegen.kernels.fold_rows import fold_rows
from tvm_neuron.codegen.kernels.functions import use_functions
from tvm_neuron.codegen.kernels.fuse import fuse
from tvm_neuron.codegen.kernels.leaky_relu import use_maxima
from tvm_neuron.codegen.kernels.operands import choose_operands, separate_operands
from tvm_neuron.codegen.kernels.order_channels import order_channels
from tvm_neuron.codegen.kernels.pack import pack_depth
from tvm_neuron.codegen.kernels.pack_columns import pack_columns
from tvm_neuron.codegen.kernels.scale_of_sums import scale_of_sums
from tvm_neuron.codegen.kernels.shift_clips import shift_clips
from tvm_neuron.codegen.kernels.split_depth import split_depth
from tvm_neuron.codegen.kernels.split_outputs import split_outputs
from tvm_neuron.codegen.kernels.start_early import start_early
from tvm_neuron.codegen.kernels.storage_dtypes import choose_dtypes
from tvm_neuron.codegen.kernels.sum_biases import sum_biases
from tvm_neuron.codegen.kernels.tables import move_tables
from tvm_neuron.codegen.kernels.truths import simplify_truths
from tvm_neuron.codegen.kernels.widen_outputs import widen_outputs
from tvm_neuron.codegen.passes.after_moves import scale_after_moves
from tvm_neuron.codegen.passes.batches import split_batches
from tvm_neuron.codegen.passes.before_moves import compute_before_moves
from tvm_neuron.codegen.passes.canonical import canonical
from tvm_neuron.codegen.passes.choose_routes import choose_routes
from tvm_neuron.codegen.passes.enumerate import enumerate_indices
from tvm_neuron.codegen.passes.fold import fold_constants
from tvm_neuron.codegen.passes.gathers import separate_gathers
from tvm_neuron.codegen.passes.lay_in_rows import lay_in_rows
from tvm_neuron.codegen.passes.lay_out import lay_out
from tvm_neuron.codegen.passes.move_cost import pricer
from tvm_neuron.codegen.passes.moves import read_through, write_moves_through, write_products_through, write_through
from tvm_neuron.codegen.passes.padding import pad_in_order, sum_through_padding
from tvm_neuron.codegen.passes.pieces import cut_pieces
from tvm_neuron.codegen.passes.reductions import split_reductions
from tvm_neuron.codegen.passes.row_values import subtract_as_add
from tvm_neuron.codegen.passes.separate_parts import separate_parts
from tvm_neuron.codegen.passes.skip_padding import skip_padding
from tvm_neuron.codegen.passes.windows import split_windows
from tvm_neuron.codegen.precision import DEFAULT, Precisions
from tvm_neuron.codegen.tuning import USUAL, Tuning
from tvm_neuron.hw import Device
from tvm_neuron.schedule.expr import Expr, Index, Load, Num, rewrite
from tvm_neuron.schedule.graph import Graph
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.operations import PARTITION_START_STEP
from tvm_neuron.schedule.rule import Context, Rule, apply_rules
from tvm_neuron.schedule.tensor import Tensor


def make_kernels(
    graph: Graph,
    rules: Sequence[Rule],
    device: Device,
    precisions: Precisions = DEFAULT,
    tuning: Tuning = USUAL,
) -> tuple[list[Kernel], dict[Tensor, int]]:
    """The kernels in the order in which they run, and the partition dimension of each tensor.

    Raises:
        CompileError: no rule takes a block, or the PE array does not take the precision.
    """
    fold_constants(graph)
    _give_dimensions(graph)
    separate_gathers(graph, device)
    cut_pieces(graph)
    graph.blocks = [canonical(block) for block in graph.blocks]
    enumerate_indices(graph)
    split_reductions(graph)
    subtract_as_add(graph)
    write_products_through(graph)
    read_through(graph)
    separate_parts(graph)
    compute_before_moves(graph)
    read_through(graph)
    write_moves_through(graph)
    sum_through_padding(graph)
    pad_in_order(graph)
    skip_padding(graph, device)
    split_windows(graph)
    split_batches(graph, device)
    partition_of = lay_out(graph, lay_in_rows(graph, device))
    scale_after_moves(graph, partition_of)
    context = Context(device, partition_of)
    write_through(graph, partition_of, PARTITION_START_STEP, pricer(rules, context))
    choose_routes(graph, partition_of, rules, context)
    kernels = fuse([apply_rules(block, rules, context) for block in graph.blocks])
    kernels = [kernel if kernel.by_dma else _simplified(kernel) for kernel in kernels]
    kernels = move_tables(kernels, partition_of)
    kernels = scale_of_sums(choose_operands(kernels, precisions, device))
    kernels = shift_clips(kernels, partition_of, device)
    kernels = fold_rows(kernels, partition_of, device)
    kernels = order_channels(kernels, partition_of, device)
    kernels = widen_outputs(kernels, partition_of, device)
    ring = tuning.weights_bytes(device)
    dtypes = choose_dtypes(kernels, precisions)
    kernels = pack_depth(kernels, partition_of, dtypes, device, ring)
    kernels = split_outputs(kernels, device)
    kernels = pack_columns(kernels, partition_of, device)
    kernels = split_depth(kernels, partition_of, device, ring)
    kernels = sum_biases(kernels, partition_of, device)
    kernels = bounce_through_dram(kernels, partition_of)
    kernels = separate_operands(kernels, partition_of, precisions)
    return fill_first(start_early(kernels, partition_of)), partition_of


def _simplified(kernel: Kernel) -> Kernel:
    return simplify_truths(use_maxima(use_functions(fold_scale(keep_bits(kernel)))))


def _give_dimensions(graph: Graph) -> None:
    """Tensors without dimensions get one of a single element: memory has partitions and bytes, no bare numbers."""
    bare = {tensor for tensor in [*graph.tensors(), *graph.outputs] if not tensor.shape}
    if not bare:
        return

    def leaf(part: Num | Index | Load) -> Expr:
        return Load(part.tensor, (Num(0),)) if isinstance(part, Load) and part.tensor in bare else part

    graph.blocks = [
        replace(block, index=(Num(0),) if block.output in bare else block.index, expr=rewrite(block.expr, leaf))
        for block in graph.blocks
    ]
    for tensor in bare:
        tensor.shape = (1,)
