"""Factors of channels multiply the weights of what reads an image, not the image: as right, in fewer cycles."""

import json
from collections.abc import Sequence
from pathlib import Path

import onnx
import pytest
import tvm

from tests.codegen.graphs import graph_of
from tests.codegen.test_fold_rows import CHANNELS, Convolutions, check
from tests.models.agreement import Case, random_inputs, relative_error
from tests.stages.networks import compile_model, run
from tvm_neuron.codegen.kernels.scale_weights import scale_weights
from tvm_neuron.codegen.precision import Precisions
from tvm_neuron.codegen.simplify import make_kernels
from tvm_neuron.hw import load_device
from tvm_neuron.hw.load import device_to_dict
from tvm_neuron.isa import Activation, TensorScalar
from tvm_neuron.schedule.kernel import Contraction, Kernel
from tvm_neuron.schedule.rule import load_rules


def network(
    channels: int = 96, outputs: Sequence[int] = (24,), kernel: int = 1, rows: int = 24, batch: int = 1, also: str = ""
) -> onnx.ModelProto:
    """An image times a factor for each channel, which convolutions read; `also` reads it beside."""
    net = Convolutions()
    x = net.op("Relu", net.conv("x", CHANNELS, channels, (1, 1), 0))
    factors = net.conv(net.op("GlobalAveragePool", x), channels, channels, (1, 1), 0)
    y = net.op("Mul", net.op("Sigmoid", factors), x)  # in either order
    found = [net.conv(y, channels, count, (kernel, kernel), 0) for count in outputs]
    if also:
        found.append(net.op("MaxPool", y, kernel_shape=[kernel, kernel]))
    return net.model(net.op("Concat", *found, axis=1) if len(found) > 1 else found[0], rows, batch)


def scaled(model: onnx.ModelProto, mode: str = "all") -> list[Kernel]:
    """The kernels that multiply by scaled weights."""
    device, precisions = load_device("inf2"), Precisions(mode)
    kernels, partition_of = make_kernels(graph_of(model), load_rules(), device, precisions)
    found = scale_weights(kernels, partition_of, precisions, device)
    return [kernel for kernel in found if isinstance(kernel.root, Contraction) and kernel.root.scale]


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
@pytest.mark.parametrize("channels", [20, 96, 200, 300])
def test_as_onnxruntime(channels: int, chip: str) -> None:
    check(network(channels), chip)


@pytest.mark.parametrize(
    "model",
    [
        network(outputs=(24, 40)),  # weights of both are scaled
        network(outputs=(200,)),  # two tiles of output channels
        network(outputs=(300,), channels=300, rows=48),  # tiles of 128 and 44 columns, of three depths
        network(kernel=3, rows=25),  # of an even number of rows two would be computed at once
    ],
    ids=["two", "wide", "deep", "window"],
)
def test_all_readers_multiply_by_scaled_weights(model: onnx.ModelProto) -> None:
    wanted = [node.output[0] for node in model.graph.node if node.op_type == "Conv"][2:]
    assert sorted(kernel.origins[0].name for kernel in scaled(model)) == wanted
    assert all("Mul" in {origin.name[:3] for origin in kernel.origins} for kernel in scaled(model))
    check(model, "inf2")


@pytest.mark.parametrize(
    ("model", "mode"),
    [
        (network(also="MaxPool"), "all"),  # the scaled image is needed
        (network(batch=2), "all"),  # each image has its own factors
        (network(outputs=(300,), kernel=3, rows=4), "all"),  # more weights than elements
        (network(), "matmult"),  # the image is kept in float32: the array would need a copy
        (network(), "all-fp16"),  # scaled weights may leave float16's range
    ],
    ids=["other reader", "batch", "small image", "float32", "float16"],
)
def test_images_are_scaled_where_weights_cannot_be(model: onnx.ModelProto, mode: str) -> None:
    assert scaled(model, mode) == []


def test_act_and_pool_share_the_work() -> None:
    """ACT scales the first and the last of three depth tiles, POOL the second, before ACT brings out four tiles."""
    program = compile_model(network(channels=300), "neuron/inf2").program
    last = next(number for number, origin in enumerate(program.origins) if origin.name == "conv6")
    own = [step for _, step in program.instructions() if step.origin == last]
    scales = [step for step in own if isinstance(step, Activation | TensorScalar) and step.result.free_elems == 24]
    assert [step.engine for step in scales] == ["act", "pool", "act"]
    assert [step.result.partitions for step in scales] == [128, 128, 44]


@pytest.mark.parametrize("kibibytes", [20, 24, 40])
@pytest.mark.parametrize("chip", ["inf1", "inf2"])
def test_in_little_memory(chip: str, kibibytes: int, tmp_path: Path) -> None:
    raw = device_to_dict(load_device(chip))
    raw |= {"name": "little", "sbuf_bytes_per_partition": {"value": kibibytes * 1024, "source": "this test"}}
    path = tmp_path / "little.json"
    path.write_text(json.dumps(raw))
    model = network(channels=160, rows=96)
    case = Case(model, random_inputs(model))
    target = tvm.target.Target({"tag": "neuron", "device": str(path)})
    found = run(compile_model(model, target), case.inputs, "strict")
    for name, exact in case.exact.items():
        assert relative_error(found[name], exact) < case.bounds[name]
