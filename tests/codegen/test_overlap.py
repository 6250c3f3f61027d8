"""Parts of a batch that overlap: the same numbers, every element written once, and the PE array waits less."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from tests.codegen.graphs import graph_of
from tests.codegen.interpreter import run_kernels
from tests.codegen.transformers import Encoder
from tvm_neuron.codegen.emit_stage import emit_stage
from tvm_neuron.codegen.kernels.storage_dtypes import choose_dtypes
from tvm_neuron.codegen.overlap import overlap
from tvm_neuron.codegen.overlap.in_parts import batch_axis, in_parts
from tvm_neuron.codegen.overlap.order import SHIFTS, Clock, orders_of_need
from tvm_neuron.codegen.overlap.part import Part, find_dependences
from tvm_neuron.codegen.residents import Room, place_stage
from tvm_neuron.codegen.simplify import make_kernels
from tvm_neuron.codegen.stage import Stage
from tvm_neuron.codegen.steps import without
from tvm_neuron.codegen.sync import synchronise
from tvm_neuron.codegen.zones import divide
from tvm_neuron.hw import Device, load_device
from tvm_neuron.isa.engines import COMPUTE
from tvm_neuron.neff import TensorInfo
from tvm_neuron.schedule.graph import Graph
from tvm_neuron.schedule.kernel import Contraction, Kernel
from tvm_neuron.schedule.rule import load_rules
from tvm_neuron.sim import time_program
from tvm_neuron.sim.clock import duration_ps


def _stage(encoder: Encoder, chip: str) -> tuple[Graph, Stage]:
    graph = graph_of(encoder.model())
    kernels, partition_of = make_kernels(graph, load_rules(), load_device(chip))
    sides = [{t: TensorInfo(t.name, t.shape, t.dtype) for t in side} for side in (graph.inputs, graph.outputs)]
    return graph, Stage("encoder", kernels, partition_of, choose_dtypes(kernels), sides[0], sides[1])


def _overlapped(stage: Stage, device: Device) -> tuple[Stage, Room]:
    found = overlap.overlap_batch(stage, device)
    assert found is not None
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "chip"),
    [
        ((256, 4, 16, 2), "inf1"),
        ((128, 2, 40, 3), "inf2"),
        ((256, 2, 24, 5), "inf2"),
        ((60, 3, 9, 9), "inf1"),
    ],
)
def test_same_meaning(size: tuple[int, int, int, int], chip: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In float64, up to the order of sums; small pieces, so that contractions are cut along their channels too."""
    monkeypatch.setattr(overlap, "PIECE_CYCLES", 1)
    hidden, heads, rows, batch = size
    encoder = Encoder(hidden, heads, rows, layers=2, batch=batch)
    graph, stage = _stage(encoder, chip)
    found = _overlapped(stage, load_device(chip))[0]
    assert len(found.kernels) > 1.5 * len(stage.kernels)
    before, after = (run_kernels(s.kernels, s.partition_of, graph, encoder.inputs()) for s in (stage, found))
    (output,) = graph.outputs
    np.testing.assert_allclose(after[output], before[output], rtol=1e-9, atol=1e-11)


def test_channels_are_cut_where_they_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlap, "PIECE_CYCLES", 1)
    _, stage = _stage(Encoder(256, 4, 16, batch=2), "inf1")
    found = _overlapped(stage, load_device("inf1"))[0]
    widths = {k.channel.extent for k in found.kernels if isinstance(k.root, Contraction) and "norm" not in k.out.name}
    assert widths == {128}


def test_nothing_to_overlap_with() -> None:
    _, stage = _stage(Encoder(128, 2, 40), "inf1")
    assert overlap.overlap_batch(stage, load_device("inf1")) is None


def test_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tensors leave nothing to weights."""
    monkeypatch.setattr(overlap, "TURNS", (1,))
    _, stage = _stage(Encoder(128, 2, 40, batch=4), "inf1")
    little = load_device("inf1")
    while (room := divide(stage.kernels, stage.partition_of, little, 0, 0).tensors_bytes) > 256:
        little = replace(little, sbuf_bytes_per_partition=little.sbuf_bytes_per_partition - room + 256)
    assert overlap.overlap_batch(stage, little) is None


@pytest.mark.slow
@pytest.mark.parametrize(("turns", "size"), [(2, (256, 4, 32, 4)), (3, (128, 2, 40, 5))])
def test_turns_load_weights_again(turns: int, size: tuple[int, int, int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """The same numbers."""
    monkeypatch.setattr(overlap, "TURNS", (turns,))
    hidden, heads, rows, batch = size
    encoder = Encoder(hidden, heads, rows, layers=2, batch=batch)
    with without("add_after_contractions"):  # with it, means lie across the batch
        graph, stage = _stage(encoder, "inf1")
    found = _overlapped(stage, load_device("inf1"))[0]
    before, after = (run_kernels(s.kernels, s.partition_of, graph, encoder.inputs()) for s in (stage, found))
    (output,) = graph.outputs
    np.testing.assert_allclose(after[output], before[output], rtol=1e-9, atol=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("chip", ["inf2"])
def test_weights_of_a_large_batch_come_once(chip: str) -> None:
    """BERT-large of batch 8; on inf1 the channels between dense layers would take two thirds of SBUF all at once."""
    device = load_device(chip)
    _, stage = _stage(Encoder(1024, 16, 128, layers=2, batch=8), chip)
    found, room = _overlapped(stage, device)
    assert room.plan.spilled_bytes == 0
    program = synchronise(emit_stage(found, room, device, False).program, device)
    timing = time_program(program, device)
    assert timing.dram_bytes_by_kind["weight"] == pytest.approx(2 * 12 * 1024 * 1024 * 2, rel=0.02)
    assert timing.total_ps < 1.5 * duration_ps(timing.macs, device.peak_macs_per_second)


@pytest.mark.slow
@pytest.mark.parametrize(("chip", "share"), [("inf1", 1), ("inf2", 0.9)])
def test_it_takes_less_time(chip: str, share: float) -> None:
    """On inf1 this network waits for weights, with overlap or without: they come in small groups, in order."""
    device = load_device(chip)
    _, stage = _stage(Encoder(512, 8, 128, layers=2, batch=4), chip)
    found = _overlapped(stage, device)

    def total_ps(stage: Stage, room: Room) -> int:
        return time_program(synchronise(emit_stage(stage, room, device, False).program, device), device).total_ps

    assert total_ps(*found) < share * total_ps(stage, place_stage(stage, device, False))


def _part(kernel: Kernel, number: int, low: int, pe: int, act: int, weights: int = 0) -> Part:
    return Part(kernel, number, low, dict.fromkeys(COMPUTE, 0) | {"pe": pe, "act": act}, weights)


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    return _stage(Encoder(60, 3, 9), "inf1")[1].kernels[0]


def _chains(kernel: Kernel, weights: int) -> list[Part]:
    """For each of three sentences, three times a product and then arithmetic on it."""
    parts: list[Part] = []
    for number in range(6):
        for low in range(3):
            even = number % 2 == 0
            part = _part(kernel, number, low, 10**6 * even, 10**6 * (not even), weights * even)
            part.after = [other for other in parts if other.low == low][-1:]
            parts.append(part)
    return parts


def test_engines_take_turns(kernel: Kernel) -> None:
    """While one sentence has its arithmetic, the array goes on to the next; nothing comes before what it needs."""
    parts = _chains(kernel, 0)
    for ordered in orders_of_need(parts, 0):
        assert sorted(map(id, ordered)) == sorted(map(id, parts))
        assert all(ordered.index(other) < ordered.index(part) for part in parts for other in part.after)
        assert [(part.number, part.low) for part in ordered[:4]] == [(0, 0), (0, 1), (1, 0), (0, 2)]


def test_parts_end_where_their_turn_does() -> None:
    """Seven of a batch, five to a turn, two to a part: each of them once, in a part of its own turn."""
    _, stage = _stage(Encoder(128, 2, 16, batch=7), "inf1")
    axes = {k: axis for k in stage.kernels if (axis := batch_axis(k, 7))}
    parts, *_ = in_parts(stage, axes, set(), 7, 5, 2, load_device("inf1"))
    assert len(axes) > 10
    numbers = {part.number for part in parts}
    lows = [tuple(part.low for part in parts if part.number == number) for number in numbers]
    alone = len(stage.kernels) - len(axes)  # without an axis of the batch, once
    assert Counter(lows) == Counter({(0, 2, 4): len(axes), (5,): len(axes), (0,): alone})
    whole = {kernel.out for kernel in stage.kernels}
    images = {(part.low, part.kernel.out.shape[0]) for part in parts if part.kernel.out not in whole}
    assert images == {(0, 2), (2, 2), (4, 1), (5, 2)}


def test_the_quickest_order_comes_first() -> None:
    device = load_device("inf2")
    _, stage = _stage(Encoder(256, 4, 64, layers=3, batch=4), "inf2")
    axes = {k: axis for k in stage.kernels if (axis := batch_axis(k, 4))}
    parts, partition_of, _ = in_parts(stage, axes, set(), 4, 4, 1, device)
    find_dependences(parts, partition_of)
    ends = []
    for ordered in orders_of_need(parts, 0):
        clock = Clock()
        for part in ordered:
            clock.run(part, clock.ready(part))
        ends.append(clock.end)
    assert len(ends) == len(SHIFTS)
    assert ends == sorted(ends)
    assert ends[0] < ends[-1]


@pytest.mark.parametrize(("room", "most"), [(100, 1), (200, 2)])
def test_weights_of_few_kernels_at_once(kernel: Kernel, room: int, most: int) -> None:
    for ordered in orders_of_need(_chains(kernel, 100), room):
        for at in range(1, len(ordered)):
            before, after = ({p.number for p in side if p.weights} for side in (ordered[:at], ordered[at:]))
            assert len(before & after) <= most


def test_dependences_follow_boxes() -> None:
    """Each part waits for those of its own sentence; what an element is read from or overwritten by stays in order."""
    _, stage = _stage(Encoder(64, 2, 16, batch=4), "inf1")
    parts = [_part(kernel, number, 0, 1, 1) for number, kernel in enumerate(stage.kernels)]
    find_dependences(parts, stage.partition_of)
    makers = {part.kernel.out: part for part in parts}
    for part in parts:
        assert {makers[t] for t in part.kernel.sources() if t in makers} <= set(part.after)
    backwards = [_part(part.kernel, part.number, 0, 1, 1) for part in reversed(parts)]
    find_dependences(backwards, stage.partition_of)
    assert any(part.after for part in backwards), "a kernel that writes what was read comes after the reader"
