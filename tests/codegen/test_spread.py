"""Depthwise convolutions on inf2: their weights come to the diagonals of tiles whose other numbers stay zero."""

from collections.abc import Sequence

import numpy as np
import onnx
import pytest

from tests.codegen.test_fold_rows import Convolutions, kernels_of
from tests.models.agreement import Case, random_inputs, relative_error
from tests.onnx_models import make_model
from tests.stages.networks import compile_model, run
from tvm_neuron.codegen.emit.spread import slots_for
from tvm_neuron.hw import load_device
from tvm_neuron.isa import DmaCopy, Instruction, Matmul, Memset, Tile
from tvm_neuron.neff import Neff


def network(channels: int, windows: Sequence[tuple[int, int]], side: int = 9) -> onnx.ModelProto:
    """A depthwise convolution with each of the windows, behind one of 1 x 1."""
    net, x = Convolutions(), "x"
    for window in windows:
        x = net.op("Relu", net.conv(x, channels, channels, (1, 1), 0))
        x = net.conv(x, 1, channels, window, window[0] // 2, group=channels)
    return make_model(net.nodes, {"x": (1, channels, side, side)}, [x], net.weights)


def instructions(compiled: Neff) -> list[Instruction]:
    return [instruction for _, instruction in compiled.program.instructions()]


def spread(compiled: Neff) -> list[Tile]:
    """Where what comes to diagonals goes."""
    copies = [part.target for part in instructions(compiled) if isinstance(part, DmaCopy)]
    return [target for target in copies if isinstance(target, Tile) and target.skew]


THREES = [(3, 3)] * 9


@pytest.mark.parametrize(
    ("channels", "windows"),
    [
        (384, THREES),  # more than there is room for at a time
        (320, THREES),  # 64 channels beside two tiles of 128
        (200, THREES),
        (128, [(5, 5)] * 8),
        (256, [(7, 7)] * 4),
        (256, [(5, 3), (3, 3), (7, 7), (3, 3), (5, 5), (2, 2), (3, 3)]),
    ],
    ids=str,
)
def test_as_onnxruntime(channels: int, windows: Sequence[tuple[int, int]]) -> None:
    model = network(channels, windows)
    case = Case(model, random_inputs(model))
    compiled = compile_model(model, "neuron/inf2")
    assert len(spread(compiled)) >= len(windows)
    found = run(compiled, case.inputs, "strict")
    for name, exact in case.exact.items():
        assert relative_error(found[name], exact) < case.bounds[name]


def test_only_the_diagonals_come_from_dram() -> None:
    compiled = compile_model(network(384, THREES), "neuron/inf2")
    assert all(target.partitions == 128 and target.dims == ((1, 28),) for target in spread(compiled))  # 27, and a zero
    own = {id(array) for name, array in compiled.weights.items() if array.shape == (128, 28)}
    assert len(own) == len(THREES)
    matmuls = [part.stationary.dims for part in instructions(compiled) if isinstance(part, Matmul)]
    assert matmuls.count(((spread(compiled)[0].skew // 2, 128),)) == 3 * len(THREES)


def test_zeros_are_made_once() -> None:
    compiled = compile_model(network(384, THREES), "neuron/inf2")
    pitch = spread(compiled)[0].skew // 2
    zeros = [part.result.dims for part in instructions(compiled) if isinstance(part, Memset)]
    assert sum(dims[1][1] for dims in zeros if dims[0] == (pitch, 128)) == pitch < 28 * len(THREES)


def test_zeros_come_before_all_else_where_that_is_quicker() -> None:
    compiled = compile_model(network(256, [(7, 7)] * 4, 7), "neuron/inf2")
    pitch = spread(compiled)[0].skew // 2
    first = next(part for part in instructions(compiled) if not isinstance(part, DmaCopy))
    assert isinstance(first, Memset)
    assert first.result.dims == ((pitch, 128), (1, pitch))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("numbers", "ring_kib", "pitch"),
    [
        (264, 64, 300),  # six transfers of two windows of 5 x 5, for 9 KiB
        (264, 32, 264),  # which would be too much of what other weights have
        (251, 48, 250),
        (300, 64, 300),
        (49, 64, 0),  # no room for one
    ],
)
def test_slots_are_whole_transfers_of_the_largest_layer(numbers: int, ring_kib: int, pitch: int) -> None:
    kernels, device = kernels_of(network(1152, [(3, 3), (5, 5), (5, 5)])), load_device("inf2")
    slots = slots_for(kernels, device, device.sbuf_bytes_per_partition, numbers * 256, ring_kib << 10)
    assert slots.pitch == pitch
    assert slots.base == (device.sbuf_bytes_per_partition - slots.pitch * 256 if pitch else 0)


@pytest.mark.parametrize(
    ("chip", "windows"),
    [
        ("inf1", THREES),  # POOL makes tiles there
        ("inf2", [(3, 3)]),  # zeros would take longer than they save
        ("inf2", [(1, 9), (9, 9)]),  # a window that is too large
    ],
)
def test_what_comes_as_ever(chip: str, windows: Sequence[tuple[int, int]]) -> None:
    model = network(128, windows)
    case = Case(model, random_inputs(model))
    compiled = compile_model(model, f"neuron/{chip}")
    assert not spread(compiled)
    found = run(compiled, case.inputs)
    assert all(relative_error(found[name], exact) < case.bounds[name] for name, exact in case.exact.items())


def test_a_weight_that_is_infinite_stays_with_its_channel() -> None:
    model = network(128, [(5, 5)] * 4)
    (last,) = [w for w in model.graph.initializer if w.name == model.graph.node[-1].input[1]]
    weights = onnx.numpy_helper.to_array(last).copy()
    weights[5, 0, 2, 2] = np.inf
    last.CopyFrom(onnx.numpy_helper.from_array(weights, last.name))
    compiled = compile_model(model, "neuron/inf2")
    assert len(spread(compiled)) == 4
    (found,) = run(compiled, random_inputs(model)).values()
    assert not np.isfinite(found[0, 5]).all()
    assert np.isfinite(np.delete(found, 5, axis=1)).all()
