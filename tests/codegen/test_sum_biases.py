"""The PE array adds biases before a clip, as weights of further channels of its data that are 1."""

from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.codegen.graphs import graph_of
from tests.codegen.test_fold_rows import CHANNELS, Convolutions, check, kernels_of
from tests.models.agreement import Case, random_inputs, relative_error
from tests.stages.networks import compile_model, run
from tests.stages.test_small_memory import shrunk
from tvm_neuron.codegen.kernels.sum_biases import _distance
from tvm_neuron.codegen.precision import Precisions
from tvm_neuron.codegen.simplify import make_kernels
from tvm_neuron.hw import load_device
from tvm_neuron.isa import Activation, ActTensorScalar, Instruction, ScalarTensorTensor, TensorScalar
from tvm_neuron.program import Loop, Node
from tvm_neuron.schedule.kernel import Contraction, Kernel
from tvm_neuron.schedule.rule import load_rules


class Blocks(Convolutions):
    """Networks of narrow tensors, each widened and clipped."""

    def __init__(self) -> None:
        super().__init__()
        self.weights |= {"low": np.array(0.0, np.float32), "high": np.array(6.0, np.float32)}

    def clip(self, x: str) -> str:
        return self.op("Clip", x, "low", "high")

    def narrow(self, x: str, depth: int, channels: int) -> str:
        return self.conv(x, depth, channels, (1, 1), 0)

    def block(self, x: str, channels: int, times: int = 6) -> str:
        """Widened, clipped, a window of each channel, clipped, narrowed."""
        wide = times * channels
        y = self.clip(self.narrow(x, channels, wide))
        y = self.clip(self.conv(y, 1, wide, group=wide))
        return self.narrow(y, wide, channels)


def residual(channels: int = 20, batch: int = 1, rows: int = 18, columns: int = 20) -> onnx.ModelProto:
    """Three blocks, to the last two of which their data are added."""
    net = Blocks()
    x = net.narrow("x", CHANNELS, channels)
    x = net.block(x, channels)
    for _ in range(2):
        x = net.op("Add", x, net.block(x, channels))
    return net.model(net.clip(net.narrow(x, channels, 4 * channels)), rows, batch, columns)


def pair(channels: int, wide: int = 96, after: str = "Clip") -> onnx.ModelProto:
    """Two convolutions, the second with a function after it."""
    net = Blocks()
    x = net.narrow(net.narrow("x", CHANNELS, channels), channels, wide)
    return net.model(net.clip(x) if after == "Clip" else net.op(after, x), rows=7, columns=9)


def contractions(model: onnx.ModelProto, chip: str = "inf2") -> list[tuple[Kernel, Contraction]]:
    return [(k, k.root) for k in kernels_of(model, chip) if isinstance(k.root, Contraction)]


def depths(model: onnx.ModelProto, chip: str = "inf2") -> list[int]:
    """Over how many channels each contraction sums."""
    return [root.weights.shape[0] for _, root in contractions(model, chip)]


def instructions(body: tuple[Node, ...]) -> list[Instruction]:
    return [i for node in body for i in (instructions(node.body) if isinstance(node, Loop) else [node])]


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
@pytest.mark.parametrize(("channels", "batch"), [(20, 1), (20, 3), (24, 1), (32, 2)])
def test_blocks_as_onnxruntime(channels: int, batch: int, chip: str) -> None:
    model = residual(channels, batch)
    assert sum(root.data.name.endswith(".ones") for _, root in contractions(model, chip)) == 4
    check(model, chip, "strict")


@pytest.mark.slow
@pytest.mark.parametrize(("chip", "kib"), [("inf1", 24), ("inf2", 20)])
def test_in_little_memory(chip: str, kib: int, tmp_path: Path) -> None:
    model = residual(24, 2, 40, 40)
    case = Case(model, random_inputs(model))
    for found in run(compile_model(model, shrunk(tmp_path, chip, kib)), case.inputs, "strict").values():
        (exact,) = case.exact.values()
        assert relative_error(found, exact) < max(case.bounds.values())


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
def test_the_last_step_is_one_instruction_of_act(chip: str) -> None:
    body = compile_model(pair(24), f"neuron/{chip}").program.body
    assert {type(i) for i in instructions(body) if isinstance(i, ActTensorScalar | TensorScalar)} == {ActTensorScalar}


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
@pytest.mark.parametrize("low", [-1e4, -1.0])
def test_any_bias_is_added_exactly(low: float, chip: str) -> None:
    """All weights of the second are zero, so that its float32 output is its clipped bias, bit for bit."""
    net = Blocks()
    net.weights |= {"low": np.array(low, np.float32), "high": np.array(1e4, np.float32)}
    y = net.narrow(net.narrow("x", CHANNELS, 24), 24, 96)
    net.weights[f"{y}.w"][:] = 0
    bias = net.rng.standard_normal(96) * 10.0 ** net.rng.integers(-6, 5, 96)
    net.weights[f"{y}.b"] = bias.astype(np.float32)
    model = net.model(net.clip(y))
    assert depths(model, chip)[-1] == 24 + 3
    (found,) = run(compile_model(model, f"neuron/{chip}"), random_inputs(model), "strict").values()
    wanted = np.clip(net.weights[f"{y}.b"], np.float32(low), np.float32(1e4))
    np.testing.assert_array_equal(found, np.broadcast_to(wanted.reshape(1, -1, 1, 1), found.shape))


@pytest.mark.parametrize(
    ("channels", "chip", "added"),
    [
        (61, "inf1", 3),
        (62, "inf1", 0),  # they would take further columns of the array
        (125, "inf2", 3),
        (126, "inf2", 0),  # or further rows
        (128, "inf2", 0),
        (160, "inf2", 3),
    ],
)
def test_only_where_the_array_has_room(channels: int, chip: str, added: int) -> None:
    assert depths(pair(channels), chip) == [CHANNELS, channels + added]


@pytest.mark.parametrize("after", ["Relu", "Sigmoid"])
def test_act_adds_the_bias_where_that_takes_no_longer(after: str) -> None:
    assert depths(pair(24, after=after)) == [CHANNELS, 24]


def test_a_distance_is_one_but_for_rounding() -> None:
    biases = np.float32([0.3, -2.7, 1000.25])
    assert _distance(biases, biases + np.float32(3)) == pytest.approx(3, rel=1e-6)
    small = np.float32([1e-7, 2e-7, 3e-7])  # as far from each other as they are large
    assert _distance(small, np.float32([2e-7, 5e-7, 3e-7])) is None
    assert _distance(small, np.float32([np.nan, 1, 1])) is None


def test_what_needs_the_sum_more_than_once() -> None:
    """HardSwish by parts: the sum goes one way, its gate another."""
    assert depths(pair(24, after="HardSwish")) == [CHANNELS, 24 + 3]
    check(pair(24, after="HardSwish"), "inf2")


@pytest.mark.parametrize("reader", ["output", "softmax", "concat", "input"])
def test_data_that_others_need_as_they_are(reader: str) -> None:
    net = Blocks()
    x = "x" if reader == "input" else net.narrow("x", CHANNELS, 24)
    others = []
    if reader == "output":
        others = [x]
    elif reader == "softmax":
        others = [net.op("Softmax", x, axis=3)]
    elif reader == "concat":
        x = net.op("Concat", x, net.narrow("x", CHANNELS, 24), axis=1)
    channels = {"input": CHANNELS, "concat": 48}.get(reader, 24)
    model = net.model(net.clip(net.narrow(x, channels, 96)))
    for name in others:
        model.graph.output.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, (1, 24, 24, 20)))
    assert depths(model)[-1] == channels
    check(model, "inf2")


@pytest.mark.parametrize(("bias", "added"), [(1.5, 3), (1e5, 0)])
def test_of_float16_no_more_than_that_holds(bias: float, added: int) -> None:
    """1e5 is no sum of three float16 numbers that are cut from it one after the other: the first is infinite."""
    net = Blocks()
    y = net.narrow(net.narrow("x", CHANNELS, 24), 24, 96)
    net.weights[f"{y}.b"] = np.full(96, bias, np.float32)
    graph, device = graph_of(net.model(net.clip(y))), load_device("inf2")
    kernels, _ = make_kernels(graph, load_rules(), device, Precisions("matmult-fp16"))
    assert [k.root.weights.shape[0] for k in kernels if isinstance(k.root, Contraction)] == [CHANNELS, 24 + added]


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
def test_of_a_gate_that_adds_a_number_to_the_same_sum(chip: str) -> None:
    """HardSwish multiplies x by the ramp of x + 3: without the bias, ACT and POOL have one instruction each."""
    model = pair(20, after="HardSwish")
    check(model, chip)
    found = [step for _, step in compile_model(model, f"neuron/{chip}").program.instructions()]
    gates = sum(isinstance(step, ScalarTensorTensor) for step in found)
    assert gates == sum(isinstance(step, Activation) and step.function == "relu" for step in found) > 0
    assert not any(isinstance(step, TensorScalar) for step in found)
