"""Channels that the same sums read lie together, so that these fill the rows of the PE array."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.codegen.test_fold_rows import CHANNELS, Convolutions, check, kernels_of
from tests.models.agreement import Case, random_inputs, relative_error
from tests.stages.networks import compile_model, run
from tests.stages.test_small_memory import shrunk
from tvm_neuron.codegen.kernels.order_channels import order_channels
from tvm_neuron.codegen.overlap.work import work_of
from tvm_neuron.hw import Device, load_device
from tvm_neuron.program import Origin
from tvm_neuron.schedule.expr import Apply, Axis, Expr, Index, Load
from tvm_neuron.schedule.kernel import ROOT, Contraction, Kernel, Operand
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor

INF1 = load_device("inf1")
ROWS, COLUMNS = 4, 8
AXES = Axis("y", ROWS), Axis("x", COLUMNS)


def joined(halves: int = 96) -> onnx.ModelProto:
    """Two rows of each half lie on the partitions side by side; then all channels of a row are summed up."""
    net = Convolutions()
    x = net.op("Relu", net.conv("x", CHANNELS, 32))
    x = net.op("Relu", net.conv(x, 32, 64, strides=(2, 2)))
    past = net.op("Relu", net.conv(x, 64, halves, (1, 1), 0))
    for _ in range(2):
        x = net.op("Add", x, net.op("Relu", net.conv(net.op("Relu", net.conv(x, 64, 32, (1, 1), 0)), 32, 64)))
    both = net.op("Concat", net.op("Relu", net.conv(x, 64, halves, (1, 1), 0)), past, axis=1)
    x = net.op("Relu", net.conv(both, 2 * halves, 64, (1, 1), 0))
    return net.model(net.conv(x, 64, 128, strides=(2, 2)), 192, columns=160)


def reading(chip: str) -> tuple[Contraction, list[int]]:
    """What sums up what was joined, and the first channels of all that write there."""
    kernels = kernels_of(joined(), chip)
    (root,) = (k.root for k in kernels if isinstance(k.root, Contraction) and k.root.data.shape[1] == 384)
    return root, [kernel.out_maps[1].const for kernel in kernels if kernel.out is root.data]


def test_each_row_of_what_is_joined_fills_the_array() -> None:
    root, starts = reading("inf1")
    assert sorted(starts) == [0, 64, 128, 192, 256, 320]
    assert root.used_tiles(INF1.pe_rows, INF1.pe_columns) == 4  # of 192 channels for each of 2 rows
    assert np.count_nonzero(root.weights) == root.weights.size // 2


def test_where_the_array_has_as_many_columns_as_rows_all_stay() -> None:
    assert sorted(reading("inf2")[1]) == [0, 192]


def test_as_onnxruntime() -> None:
    check(joined(), "inf1", "strict")


@pytest.mark.slow
def test_in_tiles_as_onnxruntime(tmp_path: Path) -> None:
    case = Case(model := joined(), random_inputs(model))
    found = run(compile_model(model, shrunk(tmp_path, "inf1", 24)), case.inputs, "nest")
    for name, exact in case.exact.items():
        assert relative_error(found[name], exact) < case.bounds[name]


def tensor(name: str, channels: int, kind: str = "temp") -> Tensor:
    return Tensor(name, (1, channels, ROWS, COLUMNS), "float32", kind)


DATA, OUT = tensor("data", 128), tensor("out", 128)


def place(first: int, channel: Axis) -> tuple[Linear, ...]:
    return (Linear(0), Linear(first, {channel: 1}), *(Linear(0, {axis: 1}) for axis in AXES))


def contraction(out: Tensor, first: int, data: Tensor, weights: np.ndarray, expr: Expr = ROOT) -> Kernel:
    channel = Axis("m", weights.shape[-1])
    root = Contraction(data, (*place(0, channel)[:1], Linear(0), *place(0, channel)[2:]), (), weights, has_zeros=True)
    return Kernel((Origin(f"{out.name}{first}", "Conv"),), out, place(first, channel), channel, AXES, expr, root)


def network(wide: Tensor, size: int = 128) -> list[Kernel]:
    """Two kernels write blocks [a0 a1], [b0 b1]; half of the outputs sum up a0 and b0, half a1 and b1."""
    rng = np.random.default_rng(3)
    halves = np.kron(np.tile(np.eye(2), (2, 1)), np.ones((64, 64)))
    writers = [contraction(wide, first, DATA, rng.standard_normal((128, size))) for first in (0, size)]
    return [*writers, contraction(OUT, 0, wide, halves * rng.standard_normal(halves.shape))]


def ordered(kernels: list[Kernel], device: Device = INF1) -> list[Kernel]:
    tensors = {tensor for kernel in kernels for tensor in kernel.tensors}
    return order_channels(kernels, dict.fromkeys(tensors, 1), device)


def result(kernels: list[Kernel]) -> np.ndarray:
    """What the last kernel's weights make of what the others write: the product of both."""
    whole = np.zeros((128, 256))
    for kernel in kernels[:-1]:
        assert isinstance(kernel.root, Contraction)
        first = kernel.out_maps[1].const
        whole[:, first : first + kernel.channel.extent] = kernel.root.weights
    assert isinstance(kernels[-1].root, Contraction)
    return whole @ kernels[-1].root.weights


def test_half_the_matmuls_make_the_same() -> None:
    before = network(tensor("wide", 256))
    after = ordered(before)
    assert [kernel.out_maps[1].const for kernel in after] == [0, 128, 64, 192, 0]
    assert work_of(after[-1], INF1)["pe"] * 2 == work_of(before[-1], INF1)["pe"]
    assert sum(work_of(k, INF1)["pe"] for k in after[:-1]) == sum(work_of(k, INF1)["pe"] for k in before[:-1])
    np.testing.assert_allclose(result(after), result(before), rtol=1e-12)
    assert ordered(after) == after


@pytest.mark.parametrize(
    ("read", "extents"),
    [([0, 1, 0, 1], [64, 64, 64, 64]), ([0, 1, 1, 0], [64, 128, 64])],
    ids=["apart", "two together"],
)
def test_blocks_that_stay_side_by_side_are_written_at_once(read: list[int], extents: list[int]) -> None:
    wide = tensor("wide", 256)
    weights = np.kron(np.eye(2)[read], np.ones((64, 64)))
    after = ordered([contraction(wide, 0, DATA, np.ones((128, 256))), contraction(OUT, 0, wide, weights)])
    assert [kernel.channel.extent for kernel in after] == [*extents, 128]


def refused(kind: str) -> list[Kernel]:
    wide = tensor("wide", 256, "output" if kind == "output" else "temp")
    first, second, last = network(wide)
    root = last.root
    assert isinstance(root, Contraction)
    table = Tensor("table", (128, COLUMNS), "float32", value=np.ones((128, COLUMNS), np.float32))
    changing = Apply("add", (ROOT, Load(table, (Index(first.channel), Index(AXES[1])))))
    read = Load(wide, tuple(part.expr() for part in place(0, last.channel)))
    scale = Operand(tensor("scale", 256), root.maps)
    match kind:
        case "arithmetic writes":
            source = Load(DATA, tuple(part.expr() for part in place(0, first.channel)))
            return [replace(first, root=None, expr=source), second, last]
        case "parts of blocks":
            sizes = {0: 96, 96: 160}
            return [*(contraction(wide, at, DATA, np.ones((128, size))) for at, size in sizes.items()), last]
        case "constants change":
            return [replace(first, expr=changing), second, last]
        case "operand":
            return [first, second, replace(last, expr=Apply("add", (ROOT, read)))]
        case "some channels":
            part = replace(root, weights=root.weights[128:], maps=(root.maps[0], Linear(128), *root.maps[2:]))
            return [first, second, last, replace(last, out=tensor("other", 128), root=part)]
        case "scale":
            return [first, second, replace(last, root=replace(root, scale=scale))]
        case "no gain":
            return [first, second, replace(last, root=replace(root, weights=np.ones_like(root.weights)))]
    return [first, second, last]


@pytest.mark.parametrize(
    "kind",
    [
        "output",
        "arithmetic writes",
        "parts of blocks",
        "constants change",
        "operand",
        "some channels",
        "scale",
        "no gain",
    ],
)
def test_what_stays(kind: str) -> None:
    kernels = refused(kind)
    assert ordered(kernels) == kernels
