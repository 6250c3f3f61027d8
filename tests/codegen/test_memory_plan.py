"""The memory plan: what is spilled, what is staged, and that nothing alive at once shares a byte."""

import itertools
import re
from itertools import pairwise

import numpy as np
import onnx
import pytest

from tests.codegen.graphs import graph_of
from tests.onnx_models import make_model
from tests.stages.networks import residual_network
from tvm_neuron.allocation.memory_plan import IDLE_STEPS, MemoryPlan, plan_within
from tvm_neuron.allocation.regions import whole_rows
from tvm_neuron.codegen.kernels.storage_dtypes import choose_dtypes
from tvm_neuron.codegen.simplify import make_kernels
from tvm_neuron.errors import CompileError
from tvm_neuron.hw import load_device
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.rule import load_rules
from tvm_neuron.schedule.tensor import Tensor

KIB = 1024
BASE = 4096


def plan(capacity: int, model: onnx.ModelProto | None = None) -> tuple[list[Kernel], MemoryPlan]:
    kernels, partition_of = make_kernels(graph_of(model or residual_network()), load_rules(), load_device("inf1"))
    outside = {tensor for k in kernels for tensor in (k.out, *k.sources()) if tensor.kind != "temp"}
    made = plan_within(kernels, partition_of, choose_dtypes(kernels), outside, BASE, capacity, load_device("inf1"))
    assert made is not None
    return kernels, made


def spilled(kernels: list[Kernel], made: MemoryPlan) -> set[str]:
    return {t.name for k in kernels for t in (k.out, *k.sources()) if t in made.in_dram and t.kind == "temp"}


def test_nothing_is_spilled_where_all_fits() -> None:
    kernels, made = plan(80 * KIB)
    assert spilled(kernels, made) == set()
    assert made.peak_bytes_per_partition <= 80 * KIB


def test_less_memory_spills_more_and_cuts_finer() -> None:
    found = []
    for capacity in (64, 12, 8, 4):
        kernels, made = plan(capacity * KIB)
        found.append((len(spilled(kernels, made)), sum(len(parts) for parts in made.strips.values())))
        assert made.peak_bytes_per_partition <= capacity * KIB
    assert found == sorted(found)
    assert found[0][0] < found[-1][0]
    assert found[0][1] < found[-1][1]


@pytest.mark.parametrize("capacity", [64, 8])
def test_strips_cover_every_kernel_once(capacity: int) -> None:
    kernels, made = plan(capacity * KIB)
    for kernel in kernels:
        if kernel.by_dma:
            continue
        times = np.zeros([axis.extent for axis in kernel.free], int)
        for region in made.strips[kernel]:
            times[tuple(slice(*region[axis]) for axis in kernel.free)] += 1
        assert np.all(times == 1)


@pytest.mark.parametrize("capacity", [64, 8])
def test_what_one_kernel_uses_lies_apart(capacity: int) -> None:
    kernels, made = plan(capacity * KIB)
    for kernel in kernels:
        if kernel.by_dma:
            continue
        used = {}
        for tensor in (kernel.out, *kernel.sources()):
            if tensor not in made.in_dram:
                storage = made.resident(tensor)
                shape = tensor.shape
            else:
                part = made.boxes(kernel, made.strips[kernel][0])[tensor]
                storage, shape = made.staged(kernel, tensor, 0, part), part[1]
            free = np.prod([extent for d, extent in enumerate(shape) if d != storage.partition_dim])
            chunks = -(-shape[storage.partition_dim] // 128)
            used[tensor] = (storage.offset, storage.offset + int(free) * chunks * (2 if "bf" in storage.dtype else 4))
        assert all(low >= BASE and high <= BASE + capacity * KIB for low, high in used.values())
        for one, two in itertools.combinations(used.values(), 2):
            assert one[1] <= two[0] or two[1] <= one[0]


def test_memory_is_left_alone_for_a_while() -> None:
    shape, nodes = (1, 64, 8, 8), []
    for number, (of, to) in enumerate(pairwise("xabcy")):
        nodes.append(onnx.helper.make_node("Softmax", [of], [f"{to}.exp"], axis=3))
        nodes.append(onnx.helper.make_node("Mul", [f"{to}.exp", f"late{number}"], [to]))
    _, made = plan(64 * KIB, make_model(nodes, dict.fromkeys(("x", *(f"late{n}" for n in range(4))), shape), ["y"], {}))
    after = [(a, b) for a in made.buffers for b in made.buffers if a.last < b.first <= a.last + IDLE_STEPS]
    assert any(not isinstance(a.name, Tensor) and not isinstance(b.name, Tensor) for a, b in after)
    for pair in after:
        first, second = sorted((made.offsets[buffer.name], buffer.size) for buffer in pair)
        assert sum(first) <= second[0]


def test_inputs_may_come_at_once_and_outputs_be_stored_at_last() -> None:
    nodes = [onnx.helper.make_node("Softmax", ["x"], ["a0"], axis=3)]
    for n in range(IDLE_STEPS + 2):
        nodes.append(onnx.helper.make_node("Softmax", [f"a{n}"], [f"a{n + 1}"], axis=3))
    nodes.append(onnx.helper.make_node("Mul", [nodes[-1].output[0], "late"], ["y"]))
    model = make_model(nodes, dict.fromkeys(("x", "late"), (1, 64, 8, 8)), ["a1", "y"], {})
    _, made = plan(64 * KIB, model)
    staged = [(b, b.name[1].name) for b in made.buffers if isinstance(b.name, tuple)]
    edges = [(buffer, name) for buffer, name in staged if name in ("late", "a1")]
    assert {name for _, name in edges} == {"late", "a1"}
    for edge, name in edges:
        before = [b for b in made.buffers if b.first < edge.first]
        for other in before if name == "late" else set(made.buffers) - {edge, *before}:
            first, second = sorted((made.offsets[buffer.name], buffer.size) for buffer in (edge, other))
            assert sum(first) <= second[0]


def test_a_plan_is_given_up_that_spills_more_than_it_may() -> None:
    kernels, made = plan(8 * KIB)
    outside = {tensor for tensor in made.in_dram if tensor.kind != "temp"}
    arguments = kernels, made.partition_of, made.dtypes, outside, BASE, 8 * KIB, load_device("inf1"), 5
    assert made.spilled_bytes > 0
    allowed = plan_within(*arguments, most_spilled_bytes=made.spilled_bytes)
    assert allowed is not None
    assert (allowed.in_dram, allowed.offsets) == (made.in_dram, made.offsets)
    assert plan_within(*arguments, most_spilled_bytes=made.spilled_bytes - 1) is None


def test_no_room_at_all_is_refused_with_the_operator() -> None:
    needs = r"'(conv|relu|pool)\d?' needs (\d+) bytes of each SBUF partition at once; 256 are there"
    with pytest.raises(CompileError, match=needs) as refused:
        plan(256)
    found = re.search(needs, str(refused.value))
    assert found
    assert int(found[2]) > 256  # of all that its operator stages, though each would have room alone


def test_rows_that_are_nearly_whole_are_brought_whole() -> None:
    """A descriptor for each row of 113 of 114 elements would cost more than the last one; few rows stay few."""
    assert whole_rows(((0, 3, 0), (64, 29, 113)), (64, 114, 114), 0) == ((0, 3, 0), (64, 29, 114))
    assert whole_rows(((8, 0), (60, 56)), (64, 56), 0) == ((8, 0), (60, 56))  # partitions stay as they are
