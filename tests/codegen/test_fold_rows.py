"""Tensors of few channels have several rows on the partitions, so that kernels work on all of these rows at once."""

import tracemalloc
from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.codegen.graphs import graph_of
from tests.models.agreement import Case, random_inputs, relative_error
from tests.onnx_models import make_model
from tests.stages.networks import compile_model, run
from tvm_neuron.codegen.precision import DEFAULT
from tvm_neuron.codegen.simplify import kernels_by_layout, make_kernels
from tvm_neuron.codegen.steps import without
from tvm_neuron.codegen.tuning import USUAL
from tvm_neuron.hw import load_device
from tvm_neuron.schedule.kernel import Contraction, Kernel
from tvm_neuron.schedule.rule import load_rules

CHANNELS = 16


class Convolutions:
    """Writes networks of convolutions with biases."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(8)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: dict[str, np.ndarray] = {}

    def conv(
        self,
        x: str,
        depth: int,
        channels: int,
        kernel: Sequence[int] = (3, 3),
        pads: int = 1,
        **attributes: int | Sequence[int],
    ) -> str:
        name = f"conv{len(self.nodes)}"
        weights = self.rng.standard_normal((channels, depth, *kernel)).astype(np.float32)
        self.weights[f"{name}.w"] = weights / weights[0].size ** 0.5
        self.weights[f"{name}.b"] = self.rng.standard_normal(channels).astype(np.float32)
        inputs = [x, f"{name}.w", f"{name}.b"]
        self.nodes.append(helper.make_node("Conv", inputs, [name], name, pads=[pads] * 4, **attributes))
        return name

    def op(self, kind: str, *inputs: str, **attributes: int) -> str:
        name = f"{kind}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name, **attributes))
        return name

    def model(self, output: str, rows: int = 24, batch: int = 1, columns: int = 20) -> onnx.ModelProto:
        return make_model(self.nodes, {"x": (batch, CHANNELS, rows, columns)}, [output], self.weights)


def kernels_of(model: onnx.ModelProto, chip: str = "inf2") -> list[Kernel]:
    """Inputs come into their padding by DMA, as images of few channels do, whatever is quicker for those here."""
    with without("choose_routes"):
        return make_kernels(graph_of(model), load_rules(), load_device(chip))[0]


def shapes(model: onnx.ModelProto) -> list[tuple[int, ...]]:
    """What the contractions write."""
    return [kernel.out.shape for kernel in kernels_of(model) if isinstance(kernel.root, Contraction)]


def check(model: onnx.ModelProto, chip: str, mode: str = "strict") -> None:
    case = Case(model, random_inputs(model))
    found = run(compile_model(model, f"neuron/{chip}"), case.inputs, mode)
    for name, exact in case.exact.items():
        assert relative_error(found[name], exact) < case.bounds[name]


def chain(
    batch: int = 1, between: int = 32, last: int = 32, strides: Sequence[int] = (2, 2), **second: Sequence[int]
) -> onnx.ModelProto:
    """Two convolutions; the last halves the rows, as its fold may be smaller then."""
    net = Convolutions()
    x = net.op("Relu", net.conv("x", CHANNELS, between))
    x = net.op("Relu", net.conv(x, between, between, **second))
    return net.model(net.conv(x, between, last, strides=strides), batch=batch)


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
@pytest.mark.parametrize(
    "second",
    [
        {},
        {"kernel": (1, 1), "pads": 0},
        {"kernel": (5, 3), "pads": 2},
        {"kernel": (2, 3), "pads": 1},  # an odd number of rows: no fold where they are
        {"dilations": (2, 1), "pads": 2},
        {"strides": (3, 1)},
        {"kernel": (5, 5), "pads": 3, "strides": (2, 2)},  # 13 rows
    ],
    ids=str,
)
def test_as_onnxruntime(second: dict[str, Sequence[int]], chip: str) -> None:
    check(chain(**second), chip)


@pytest.mark.parametrize("mode", ["nest", "strict"])
def test_batches(mode: str) -> None:
    check(chain(batch=3), "inf2", mode)


def test_as_many_rows_as_partitions_take() -> None:
    """The stride of the last convolution brings half as many rows; the output itself is as the model has it."""
    model = chain(between=32, last=64, strides=(2, 1))
    assert shapes(model) == [(1, 128, 14, 22), (1, 64, 14, 22), (1, 64, 12, 20)]  # the first has a copy beside it
    middle = [kernel.root for kernel in kernels_of(model) if isinstance(kernel.root, Contraction)][1]
    assert middle.weights.shape == (128, 2, 3, 64)  # of 2 rows, from the folded rows above, here and below
    assert middle.repeats == 2
    assert np.count_nonzero(middle.weights) == 2 * 32 * 3 * 3 * 32


def test_squares_of_pixels_where_columns_are_halved_too() -> None:
    """All of the array, as with 4 rows; a window of 5 x 5 meets 9 squares, and the last one 2 x 2."""
    model = chain(between=32, last=64, kernel=(5, 5), pads=2)
    assert shapes(model) == [(1, 128, 14, 12), (1, 128, 14, 12), (1, 64, 12, 10)]
    middle, last = [kernel.root for kernel in kernels_of(model) if isinstance(kernel.root, Contraction)][1:]
    assert middle.weights.shape == (128, 3, 3, 128)
    assert middle.repeats == 4
    assert np.count_nonzero(middle.weights) == 4 * 32 * 5 * 5 * 32
    assert last.weights.shape == (128, 2, 2, 64)


def test_what_branches_and_joins_is_folded_alike() -> None:
    """Concatenated parts keep their channels together, so that each has its rows on partitions of its own."""
    net = Convolutions()
    x = net.op("Relu", net.conv("x", CHANNELS, 64))
    past, y = net.conv(x, 64, 64, (1, 1), 0), net.conv(x, 64, 64, (1, 1), 0)
    y = net.op("Add", y, net.op("Sigmoid", net.conv(net.op("Relu", net.conv(y, 64, 32, (1, 1), 0)), 32, 64)))
    both = net.op("Concat", net.op("Tanh", net.conv(y, 64, 64, (1, 1), 0)), past, axis=1)
    x = net.op("Relu", net.conv(both, 128, 64, (1, 1), 0))
    model = net.model(net.conv(x, 64, 128, strides=(2, 2)))
    found = shapes(model)
    assert found.count((1, 256, 12, 20)) == 2  # both parts of what is joined, 2 rows of 128 channels
    assert found.count((1, 128, 12, 20)) == 3
    for chip in ("inf1", "inf2"):
        check(model, chip)


@pytest.mark.parametrize("reader", ["pool", "softmax", "output"])
def test_what_others_read_in_other_ways_stays(reader: str) -> None:
    net = Convolutions()
    x = net.op("Relu", net.conv("x", CHANNELS, 32))
    if reader == "pool":
        x = net.op("MaxPool", x, kernel_shape=[2, 2])
    elif reader == "softmax":
        x = net.op("Softmax", x, axis=3)
    model = net.model(x)
    assert shapes(model)[0][:2] == (1, 32)
    check(model, "inf2")


def depthwise(
    channels: int, few: int, stride: int = 1, columns: int = 20, last: Sequence[int] = (4, 4)
) -> onnx.ModelProto:
    """Two inverted bottlenecks, the second one joined to what it begins with; a quarter of the rows leaves."""
    net = Convolutions()
    x = net.op("Relu", net.conv("x", CHANNELS, channels, (1, 1), 0))
    x = net.op("Relu", net.conv(x, 1, channels, group=channels, strides=(stride, stride)))
    few_at_first = x = net.conv(x, channels, few, (1, 1), 0)
    x = net.op("Relu", net.conv(x, few, channels, (1, 1), 0))
    x = net.op("Relu", net.conv(x, 1, channels, group=channels))
    x = net.op("Add", few_at_first, net.conv(x, channels, few, (1, 1), 0))
    return net.model(net.conv(x, few, 128, strides=last), rows=48, columns=columns)


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
@pytest.mark.parametrize(("channels", "few", "stride"), [(32, 16, 1), (96, 24, 1), (144, 24, 2), (160, 40, 1)])
def test_depthwise_as_onnxruntime(channels: int, few: int, stride: int, chip: str) -> None:
    check(depthwise(channels, few, stride), chip)


@pytest.mark.parametrize(
    ("channels", "by", "tiles"),
    [(32, 4, 1), (96, 4, 3), (144, 4, 5), (192, 2, 3), (256, 1, 2)],
)
def test_depthwise_rows_take_the_partitions_that_channels_leave(channels: int, by: int, tiles: int) -> None:
    """Each tile of 128 partitions is multiplied by tiles of its own alone: 9 times for as many columns as remain."""
    model = depthwise(channels, 24, columns=80, last=(4, 1))
    layer = [kernel for kernel in kernels_of(model) if isinstance(kernel.root, Contraction)][4]
    assert isinstance(layer.root, Contraction)
    assert layer.out.shape == (1, channels * by, 48 // by, 80)
    assert layer.root.repeats == by
    assert layer.root.used_tiles(128, 128) == tiles
    assert np.count_nonzero(layer.root.weights) == by * channels * 9


def normed(channels: int = 32, centred: bool = False, rows: int = 48) -> onnx.ModelProto:
    """A depthwise window and a norm over channels, as before each pair of pointwise layers of a ConvNeXt."""
    net = Convolutions()
    scale = {"scale": net.rng.uniform(0.5, 1.5, (channels, 1, 1)), "shift": net.rng.standard_normal((channels, 1, 1))}
    net.weights |= {name: value.astype(np.float32) for name, value in scale.items()}
    net.weights |= {"axis": np.array([1], np.int64), "tiny": np.array(1e-6, np.float32)}
    x = net.op("Relu", net.conv("x", CHANNELS, channels, (1, 1), 0))
    found = net.conv(x, 1, channels, (7, 7), 3, group=channels)
    if centred:
        found = net.op("Sub", found, net.op("ReduceMean", found, "axis", keepdims=1))
    squares = net.op("ReduceMean", net.op("Mul", found, found), "axis", keepdims=1)
    found = net.op("Div", found, net.op("Sqrt", net.op("Add", squares, "tiny")))
    found = net.op("Add", net.op("Mul", found, "scale"), "shift")
    wide = net.op("Relu", net.conv(found, channels, 4 * channels, (1, 1), 0))
    y = net.op("Add", x, net.conv(wide, 4 * channels, channels, (1, 1), 0))
    return net.model(net.conv(y, channels, 64, strides=(4, 4)), rows=rows, columns=40)


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
@pytest.mark.parametrize(
    ("channels", "centred", "rows"), [(32, False, 48), (32, True, 48), (24, False, 48), (32, False, 44), (48, True, 40)]
)
def test_norms_over_channels_as_onnxruntime(channels: int, centred: bool, rows: int, chip: str) -> None:
    check(normed(channels, centred, rows), chip)


def test_norms_over_channels_work_on_as_many_rows() -> None:
    """Where the array adds up channels, it does so for each row: all of the block has 4 rows of 32 channels then."""
    ways = kernels_by_layout(graph_of(normed()), load_rules(), load_device("inf2"), DEFAULT, USUAL, is_quick=False)
    names = ("ReduceMean", "Sub", "Mul", "Div", "Add")
    of_norms = [[k for k in made if k.origins[0].op in names and isinstance(k.root, Contraction)] for made, _ in ways]
    assert any(of_norms)
    for (made, _), sums in zip(ways, of_norms, strict=True):
        for kernel in sums:
            assert isinstance(kernel.root, Contraction)
            rows = np.arange(128) // 32
            np.testing.assert_array_equal(kernel.root.weights != 0, rows[:, None] == rows)
            assert kernel.out.shape[:2] == (1, 128)
        read = {tensor for kernel in made for tensor in kernel.sources()}
        assert all(kernel.out in read for kernel in made if kernel.out.name.startswith("ones"))


def test_folds_that_are_only_tried_copy_no_weights() -> None:
    """No fold pays here. The weights of 4 rows as one are over 12 times as large: only where there are any is noted."""
    net, x = Convolutions(), "x"
    for depth in (CHANNELS, 128, 128, 128, 128):
        x = net.op("Relu", net.conv(x, depth, 128))
    graph = graph_of(net.model(net.conv(x, 128, 256, strides=(2, 2)), rows=28, columns=28))
    rules, device = load_rules(), load_device("inf1")
    tracemalloc.start()
    try:
        kernels, _ = make_kernels(graph, rules, device)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    roots = [kernel.root for kernel in kernels if isinstance(kernel.root, Contraction)]
    assert [root.repeats for root in roots] == [1] * 6
    assert peak < 6 * sum(root.weights.nbytes for root in roots)
