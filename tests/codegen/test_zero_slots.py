"""Slots become zero amid kernels that leave POOL time."""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, cast

import pytest

from tests.codegen.test_fold_rows import CHANNELS, Convolutions, kernels_of
from tvm_neuron.codegen.emit.builder import Builder
from tvm_neuron.codegen.emit.slots import Slots
from tvm_neuron.codegen.emit.zero_slots import zero_slots
from tvm_neuron.codegen.overlap.work import work_of
from tvm_neuron.hw import load_device
from tvm_neuron.isa import Instruction, Memset
from tvm_neuron.schedule.kernel import Contraction, Kernel
from tvm_neuron.sim.clock import duration_ps

INF2 = load_device("inf2")
BEFORE = "what was there before"


@dataclass
class Body:
    """Of a builder, what slots need."""

    slots: Slots
    body: list[Any] = field(default_factory=list)

    def emit(self, instruction: Instruction) -> None:
        self.body.append(instruction)


def kernel(is_product: bool) -> Kernel:
    """One that keeps the array, or one that keeps POOL."""
    net = Convolutions()
    x = net.op("Relu", net.conv("x", CHANNELS, 128))
    model = net.model(net.op("Softmax", x, axis=3), rows=96, columns=96)
    kernels = kernels_of(model)
    if is_product:
        return next(each for each in kernels if isinstance(each.root, Contraction))
    works = [(work_of(each, INF2), each) for each in kernels]
    return next(each for work, each in works if 0 < work["pool"] == max(work.values()))


def zeroed(is_product: bool, pitch: int = 600, nodes: int = 4) -> list[Any]:
    """What there is once the kernel's nodes have zeros among them."""
    builder = Body(Slots(0, pitch), [BEFORE, *range(nodes)])
    zero_slots(cast(Builder, builder), 1, kernel(is_product), INF2)
    return builder.body


def test_half_of_the_time_that_others_take_spread_over_the_nodes() -> None:
    found = zeroed(is_product=True)
    assert found[:2] == [BEFORE, 0]
    gaps = [found.index(node) for node in range(4)] + [len(found)]
    counts = [later - earlier - 1 for earlier, later in pairwise(gaps)]
    assert min(counts) > 0
    assert max(counts) - min(counts) <= 1
    zeros = [each for each in found if isinstance(each, Memset)]
    work = work_of(kernel(is_product=True), INF2)
    taken = sum(duration_ps(zero.cost(INF2).busy_cycles, INF2.pool_clock_hz) for zero in zeros)
    assert 0.3 < taken / (max(work.values()) - work["pool"]) < 0.6
    offsets = [zero.result.offset.base for zero in zeros]
    assert offsets == [12 * number for number in range(len(zeros))]


def test_none_amid_a_kernel_that_keeps_pool() -> None:
    assert zeroed(is_product=False) == [BEFORE, *range(4)]


@pytest.mark.parametrize("pitch", [0, 6, 10])
def test_no_more_than_there_are(pitch: int) -> None:
    zeros = [each for each in zeroed(is_product=True, pitch=pitch) if isinstance(each, Memset)]
    assert sum(zero.result.dims[1][1] for zero in zeros) == pitch
