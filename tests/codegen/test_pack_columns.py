"""Convolutions of few channels read several columns of their window at once; columns skip other rows' steps."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx
import pytest

from tests.codegen.test_fold_rows import CHANNELS, Convolutions, check, kernels_of
from tests.models.agreement import Case, random_inputs, relative_error
from tests.onnx_models import make_model
from tests.stages.networks import compile_model, run
from tests.stages.test_small_memory import shrunk
from tvm_neuron.codegen.kernels.split_outputs import split_outputs
from tvm_neuron.codegen.steps import without
from tvm_neuron.codegen.tiles.tiled_dims import tiled_dims
from tvm_neuron.hw import load_device
from tvm_neuron.schedule.expr import Axis, Load
from tvm_neuron.schedule.kernel import Contraction, Kernel
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor


def network(depth: int = 32, last: int = 64, rows: int = 101, **second: Any) -> onnx.ModelProto:
    """A convolution that reads `depth` channels; an odd number of rows is not folded."""
    net = Convolutions()
    x = net.op("Relu", net.conv("x", CHANNELS, depth))
    return net.model(net.op("Relu", net.conv(x, depth, last, **second)), rows)


def packed(model: onnx.ModelProto, chip: str = "inf1") -> list[Kernel]:
    """Those that are, but for first layers, whose copies come from the model's input."""
    return [k for k in all_packed(model, chip) if "conv0" not in [origin.name for origin in k.origins]]


def all_packed(model: onnx.ModelProto, chip: str = "inf1") -> list[Kernel]:
    return [k for k in kernels_of(model, chip) if isinstance(k.root, Contraction) and ".columns" in k.root.data.name]


def weights_of(kernels: Sequence[Kernel]) -> list[tuple[int, ...]]:
    return [kernel.root.weights.shape for kernel in kernels if isinstance(kernel.root, Contraction)]


@pytest.mark.parametrize("depth", [20, 32, 48, 64])
@pytest.mark.parametrize(
    "second",
    [
        {},
        {"kernel": (1, 4), "pads": 2},
        {"kernel": (3, 5), "pads": 2},
        {"dilations": (1, 2), "pads": 2},
        {"strides": (2, 2)},
        {"strides": (1, 3), "kernel": (3, 2)},
    ],
    ids=str,
)
def test_as_onnxruntime(second: dict[str, Any], depth: int) -> None:
    model = network(depth, 384, **second)
    assert packed(model)
    check(model, "inf1")


@pytest.mark.parametrize("depth", [32, 48])
def test_on_the_wider_array(depth: int) -> None:
    model = network(depth, 640)
    assert packed(model, "inf2")
    check(model, "inf2")


@pytest.mark.parametrize(("depth", "weights"), [(20, (96, 3, 64)), (32, (96, 3, 64)), (64, (128, 2, 3, 64))])
def test_copies_lie_where_engines_may_start(depth: int, weights: tuple[int, ...]) -> None:
    assert weights_of(packed(network(depth))) == [weights]


@pytest.mark.parametrize(
    "model",
    [
        network(80),  # no room for a copy
        network(kernel=(1, 1)),  # one column and one row
        network(64, kernel=(3, 1)),  # one column, and two copies hold four rows, not three
        network(32, rows=3),  # the weights take longer to come than the PE array works
    ],
    ids=["channels", "point", "rows", "weights"],
)
def test_what_is_not_packed(model: onnx.ModelProto) -> None:
    assert not packed(model)
    check(model, "inf1")


@pytest.mark.parametrize("batch", [1, 2])
def test_the_first_layer_does_not_wait_for_copies(batch: int) -> None:
    """Of several images neither: the first layer of each needs its copies before the array can do anything else."""
    net = Convolutions()
    x = net.op("Relu", net.conv("x", 3, 64, (7, 7), 3, strides=(2, 2)))
    for _ in range(6):
        x = net.op("Relu", net.conv(x, 64 if len(net.nodes) == 2 else 160, 160))
    model = make_model(net.nodes, {"x": (batch, 3, 224, 224)}, [x], net.weights)
    roots = [kernel.root for kernel in kernels_of(model, "inf2") if isinstance(kernel.root, Contraction)]
    assert [".columns" in root.data.name for root in roots if ".packed" in root.data.name] == [False]


def test_in_tiles_as_onnxruntime(tmp_path: Path) -> None:
    model = network(rows=65)
    assert packed(model)
    case = Case(model, random_inputs(model))
    found = run(compile_model(model, shrunk(tmp_path, "inf1", 14)), case.inputs, "strict")
    for name, exact in case.exact.items():
        assert relative_error(found[name], exact) < case.bounds[name]


def folded(*kernel: int) -> onnx.ModelProto:
    """Convolutions of tensors that have 4 rows, then 2 on the partitions."""
    net = Convolutions()
    x = net.op("Relu", net.conv("x", CHANNELS, 32))
    x = net.op("Relu", net.conv(x, 32, 64, kernel, strides=(2, 2)))
    return net.model(net.conv(x, 64, 128, strides=(2, 2)), 48, columns=40)


def test_columns_skip_steps_of_other_rows() -> None:
    """Of 5 rows that two output rows need, the row above the 4 that lie side by side is for the first one alone."""
    whole = [k for k in kernels_of(folded(3, 3), "inf2") if isinstance(k.root, Contraction)]
    assert weights_of(whole)[1] == (128, 2, 3, 128)  # all columns at once: nothing to skip
    parts = split_outputs(whole[1:2], load_device("inf1"))
    assert weights_of(parts) == [(128, 2, 3, 64), (128, 3, 64)]
    assert [kernel.out_maps[1].const for kernel in parts] == [0, 64]


@pytest.mark.parametrize("kernel", [(3, 3), (2, 3), (5, 1)], ids=str)
def test_skipped_steps_as_onnxruntime(kernel: tuple[int, int]) -> None:
    check(folded(*kernel), "inf1")


def test_other_kernels_stay_whole() -> None:
    kernels = kernels_of(network(), "inf1")
    assert split_outputs(kernels, load_device("inf1")) == kernels


def two_rows(kernel: Sequence[int] = (3, 3), rows: int = 48) -> onnx.ModelProto:
    """A convolution of 32 channels with two rows in one, as its 64 outputs have."""
    net = Convolutions()
    x = net.op("Relu", net.conv("x", CHANNELS, 32))
    x = net.op("Relu", net.conv(x, 32, 64, kernel, kernel[0] // 2))
    return net.model(net.conv(x, 64, 128, strides=(2, 2)), rows, columns=64)


def test_copies_of_rows_above_where_they_leave_fewer_matmuls() -> None:
    """Each of two output rows reads two folded rows of data: of both, three columns take 3 matmuls instead of 4."""
    found = packed(two_rows())[:2]
    assert weights_of(found) == [(128, 3, 64), (128, 3, 64)]
    assert len({kernel.root.data for kernel in found if isinstance(kernel.root, Contraction)}) == 1
    assert weights_of(packed(network(48, kernel=(4, 3)))) == [(128, 2, 3, 64)]  # 6, of columns 8
    assert weights_of(packed(network(48))) == [(128, 2, 3, 64)]  # of columns: two copies hold four rows, not three


def test_what_dma_brings_has_no_copies_of_rows() -> None:
    """A tile brings in again the rows that it shares with the one before, but not those above, which copies need."""
    net = Convolutions()
    x = net.op("Relu", net.conv("x", 48, 64, (4, 3)))
    model = make_model(net.nodes, {"x": (2, 48, 129, 80)}, [x], net.weights)  # more than SBUF: it runs in tiles
    assert weights_of(all_packed(model)) == [(128, 2, 4, 64)]
    check(model, "inf1")


@pytest.mark.parametrize("kernel", [(3, 3), (3, 5), (5, 3)], ids=str)
def test_copies_of_rows_as_onnxruntime(kernel: Sequence[int]) -> None:
    model = two_rows(kernel)
    assert packed(model)
    check(model, "inf1")


@pytest.mark.parametrize("depth", [20, 48])
@pytest.mark.parametrize(
    "second",
    [{"kernel": (4, 3)}, {"kernel": (4, 3), "strides": (2, 1)}, {"kernel": (4, 1), "dilations": (3, 1)}],
    ids=str,
)
def test_copies_of_single_rows_as_onnxruntime(second: dict[str, Any], depth: int) -> None:
    model = network(depth, 384, pads=2, **second)
    assert packed(model)
    check(model, "inf1")


@pytest.mark.slow
def test_copies_of_rows_in_tiles_as_onnxruntime(tmp_path: Path) -> None:
    model = two_rows(rows=96)
    case = Case(model, random_inputs(model))
    with without("choose_routes"):  # the input comes into its padding by DMA
        compiled, whole = compile_model(model, shrunk(tmp_path, "inf1", 14)), compile_model(model)
    matmuls = [sum(i.mnemonic == "nc_matmul" for _, i in its.program.instructions()) for its in (compiled, whole)]
    assert compiled.memory["spill"] == 0
    assert matmuls[0] > 3 * matmuls[1]
    found = run(compiled, case.inputs, "strict")
    for name, exact in case.exact.items():
        assert relative_error(found[name], exact) < case.bounds[name]


@pytest.mark.parametrize(("written", "is_cut"), [(1, True), (0, True), (-1, False)])
def test_tiles_of_rows_copy_what_was_made_before(written: int, is_cut: bool) -> None:
    """A copy of rows above can be made in each tile; one of rows below would need those of a later tile."""
    data, row, column, channel = Tensor("d", (1, 64, 12, 8), "bfloat16"), Axis("y", 8), Axis("x", 8), Axis("c", 32)
    place = (Linear(), Linear(32, {channel: 1}), Linear(1 + written, {row: 1}), Linear(0, {column: 1}))
    read = (Linear(), Linear(0, {channel: 1}), Linear(1, {row: 1}), Linear(0, {column: 1}))
    load = Load(data, tuple(part.expr() for part in read))
    copy = Kernel((), data, place, channel, (row, column), load)
    assert (tiled_dims([copy], {data: 1}, {data: 2}) is not None) == is_cut
