"""compile_function: the list of steps from one Relax function to its NEFF."""

from dataclasses import replace
from functools import cache, partial

from tvm import relax

from tvm_neuron.codegen.at_once import in_processes
from tvm_neuron.codegen.by_hand import compile_by_hand, is_by_hand
from tvm_neuron.codegen.capability import verdict
from tvm_neuron.codegen.compile_stage import compile_stage
from tvm_neuron.codegen.found_before import recall, remember
from tvm_neuron.codegen.kernels.bring_inputs import BRING_INPUTS, bring_inputs
from tvm_neuron.codegen.kernels.cut_to_fit import cut_to_fit
from tvm_neuron.codegen.kernels.saturate import saturate
from tvm_neuron.codegen.kernels.scale_weights import scale_weights
from tvm_neuron.codegen.kernels.storage_dtypes import choose_dtypes
from tvm_neuron.codegen.kernels.weights_as_moving import WEIGHTS_AS_MOVING, weights_as_moving
from tvm_neuron.codegen.legalise import legalise
from tvm_neuron.codegen.options import LEVELS, BuildOptions
from tvm_neuron.codegen.pipeline.cut import cut
from tvm_neuron.codegen.precision import Precisions
from tvm_neuron.codegen.search import Found, fitting, quickest, total_ps
from tvm_neuron.codegen.simplify import kernels_by_layout
from tvm_neuron.codegen.stage import Stage
from tvm_neuron.codegen.work import asked_macs
from tvm_neuron.hw import Device
from tvm_neuron.neff import Neff, Pipeline, TensorInfo, pipeline_pieces
from tvm_neuron.partition import Verdict
from tvm_neuron.partition.constraints import IsConstant
from tvm_neuron.partition.spans import SpansOf
from tvm_neuron.schedule.graph import Graph
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.rule import Rule, load_rules
from tvm_neuron.schedule.tensor import Tensor


@cache
def _rules(fast_relayout: bool) -> tuple[Rule, ...]:
    """All rules, but for transpositions by the PE array if data may only be moved byte by byte."""
    return tuple(rule for rule in load_rules() if fast_relayout or rule.name != "transposition")


def compile_function(func: relax.Function, name: str, device: Device, options: BuildOptions) -> bytes:
    """The NEFF of a partitioned function.

    Raises:
        CompileError: an operator can't be scheduled, or needs more on-chip memory than there is.
        ProgramError: the compiler made a program that breaks a rule or races with itself (a defect of ours).
    """

    if is_by_hand(func):
        again = partial(compile_function, device=device, options=replace(options, on_stage=lambda _stage: None))
        return b"".join(pipeline_pieces(compile_by_hand(func, name, options, again)))
    known = recall(func, device, options) if options.optlevel == max(LEVELS) else options.tuning
    if known is not None:  # there is nothing to search, or an earlier search found it
        pipeline = compile_pipeline(legalise(func), name, device, replace(options, tuning=known))
        return b"".join(pipeline_pieces(pipeline))
    task = partial(_found, name, device)
    elsewhere = partial(in_processes, task, lambda: legalise(func))
    found, tuning = quickest(lambda options: task(legalise(func), options), name, options, elsewhere)
    remember(func, device, options, tuning)
    return found.neff


def _found(name: str, device: Device, graph: Graph, options: BuildOptions) -> Found:
    pipeline = compile_pipeline(graph, name, device, options)
    return Found(b"".join(pipeline_pieces(pipeline)), total_ps(pipeline))


def compile_pipeline(graph: Graph, name: str, device: Device, options: BuildOptions) -> Pipeline:
    """A graph of blocks as the programs of as many cores as the options ask for."""
    ways = _whole(graph, name, device, options)
    if options.pipeline_cores == 1:
        return Pipeline.of(compile_stage(ways, device, options, options.static_weights))
    return min(fitting(lambda stage: cut(stage, device, options), ways), key=total_ps)


def compile_graph(graph: Graph, name: str, device: Device, options: BuildOptions) -> Neff:
    """A graph of blocks as the program of one core."""
    return compile_stage(_whole(graph, name, device, options), device, options, options.static_weights)


def _whole(graph: Graph, name: str, device: Device, options: BuildOptions) -> list[Stage]:
    """All kernels of a graph, in each layout that may be the quickest."""
    # As the model has them; on the device a number is a tensor of one element, and 64-bit integers have 32 bits.
    inputs = {t: TensorInfo(t.name, t.shape, t.dtype) for t in graph.inputs}
    outputs = {t: TensorInfo(t.name, t.shape, t.dtype) for t in graph.outputs}
    options.on_stage(f"{name}: schedule")
    rules = _rules(options.fast_relayout)
    asked = asked_macs(graph)
    is_quick = options.optlevel == min(LEVELS)

    def whole(way: tuple[list[Kernel], dict[Tensor, int]]) -> Stage:
        kernels, partition_of = way
        if not options.saturate_infinity:  # which limits what is multiplied, and so is not to be put off
            kernels = scale_weights(kernels, partition_of, options.precisions, device)
        dtypes = choose_dtypes(kernels, options.precisions)
        if options.saturate_infinity:
            kernels = saturate(kernels, partition_of, dtypes)
        may_stay = options.static_weights or options.pipeline_cores > 1
        if WEIGHTS_AS_MOVING.is_taken and not may_stay:  # weights are counted on as they are where they may stay
            kernels = weights_as_moving(kernels, partition_of, device)
        stage = Stage(name, kernels, partition_of, dtypes, inputs, outputs, options.tuning, asked_macs=asked)
        return cut_to_fit(bring_inputs(stage, device) if BRING_INPUTS.is_taken else stage, device)

    return fitting(whole, kernels_by_layout(graph, rules, device, options.precisions, options.tuning, is_quick))


def can_schedule(
    call: relax.Call,
    is_constant: IsConstant,
    spans_of: SpansOf,
    device: Device,
    precisions: Precisions,
    fast_relayout: bool,
) -> Verdict:
    """Whether the kernel of a call can be scheduled on the device."""
    return verdict(call, is_constant, spans_of, _rules(fast_relayout), device, precisions)
