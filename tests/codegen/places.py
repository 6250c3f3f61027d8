"""Every operator whose kernel addresses memory by the values of an operand, tried with values in and out of range.

Run as a program, since what goes wrong ends a process: it prints a line for each disagreement, and the number of tries.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnxruntime
import tvm
from numpy.typing import NDArray
from onnx import helper
from tvm import relax

import tvm_neuron
from tests.frontend.test_standard_forms import made
from tvm_neuron import relay
from tvm_neuron.errors import PositionError
from tvm_neuron.relay.graph_executor import GraphModule

RNG = np.random.default_rng(16)
ON_CPU = tvm_neuron.BuildOptions(on_cpu=("*",))
Arrays = dict[str, NDArray[Any]]
Run = Callable[[Arrays], NDArray[Any]]


@dataclass(frozen=True)
class Case:
    """A compiled operator and its reference; the last number of `inputs[varied]` may be from `low` up to `end`."""

    name: str
    run: Run
    reference: Run
    inputs: Arrays
    varied: str
    low: int
    end: int

    def tries(self) -> Iterator[str]:
        """What differs from what should be, for each value."""
        dtype = self.inputs[self.varied].dtype
        far = np.iinfo(dtype) if dtype.kind in "iu" else np.iinfo(np.int32)
        values = {self.low, self.end - 1, self.low - 1, self.end, self.end + 1000, far.max, far.min}
        for value in sorted(value for value in values if far.min <= value <= far.max):
            array = self.inputs[self.varied].copy()
            array.flat[-1] = value
            yield self._tried(value, self.inputs | {self.varied: array})

    def _tried(self, value: int, inputs: Arrays) -> str:
        is_inside = self.low <= value < self.end
        try:
            found = self.run(inputs)
        except PositionError as error:
            number = str(value) if abs(value) < 2**24 else "out"  # RoiAlign's are float32
            is_named = str(error).startswith(f"{self.name.split('-')[0]} 'look'") and number in str(error)
            return "" if is_named and not is_inside else f"{self.name} of {value}: {error}"
        wanted = self.reference(inputs) if is_inside else None
        if wanted is not None and np.allclose(found, wanted, rtol=1e-6, atol=1e-6):  # float32, a few roundings
            return ""
        return f"{self.name} of {value}: {found.ravel()[:4]}, not {'refused' if wanted is None else wanted.ravel()[:4]}"


def onnx_case(
    name: str, inputs: Arrays, low: int, end: int, varied: str = "i", opset: int = 18, **attributes: Any
) -> Case:
    """An ONNX operator beside onnxruntime; what follows a hyphen in the name is not the operator's."""
    node = helper.make_node(name.split("-")[0], list(inputs), ["y"], name="look", **attributes)
    model = made(node, inputs, {}, opset=opset)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    mod, params = relay.frontend.from_onnx(model)
    executor = GraphModule(relay.build(mod, target="neuron", params=params, options=ON_CPU)["default"]())

    def run(given: Arrays) -> NDArray[Any]:
        executor.run(**given)
        return executor.get_output(0).numpy()

    return Case(name, run, lambda given: session.run(None, given)[0], inputs, varied, low, end)


def relax_case(
    name: str, call: Callable[..., relax.Expr], inputs: Arrays, low: int, end: int, reference: Run
) -> Case:
    """An operator of Relax that no ONNX operator becomes."""
    variables = [relax.Var(key, relax.TensorType(value.shape, str(value.dtype))) for key, value in inputs.items()]
    builder = relax.BlockBuilder()
    with builder.function("main", variables):
        with builder.dataflow():
            result = builder.emit(call(*variables), "look")
            if isinstance(result.ty, relax.TupleType):
                result = builder.emit(relax.TupleGetItem(result, 0))
            result = builder.emit_output(result)
        builder.emit_func_output(result)
    with tvm_neuron.build_options(ON_CPU):
        machine = relax.VirtualMachine(tvm.compile(builder.get(), target="neuron"), tvm.cpu())

    def run(given: Arrays) -> NDArray[Any]:
        return machine["main"](*map(tvm.runtime.tensor, given.values())).numpy()

    return Case(name, run, reference, inputs, "i", low, end)


def floats(*shape: int) -> NDArray[Any]:
    """Random numbers."""
    return RNG.standard_normal(shape).astype(np.float32)


def onnx_cases() -> Iterator[Case]:
    """ONNX operators with every dtype of their indices."""
    x = floats(4, 5, 6)
    for dtype in (np.int64, np.int32):
        low = RNG.integers(-5, 5, (2, 3, 2)).astype(dtype)
        yield onnx_case("Gather", {"x": x, "i": low[0]}, -5, 5, axis=1)
        yield onnx_case("GatherElements", {"x": x, "i": low}, -5, 5, axis=1)
        updates = {"i": low, "u": floats(*low.shape)}
        yield onnx_case("Scatter", {"x": x} | updates, -5, 5, axis=1, opset=10)
        yield onnx_case("ScatterElements", {"x": x} | updates, -5, 5, axis=1)
        for reduction in ("add", "mul", "min", "max"):
            yield onnx_case(f"ScatterElements-{reduction}", {"x": x} | updates, -6, 6, axis=2, reduction=reduction)
        label = np.array([0, 3, 1], dtype)
        for name in ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"):
            yield onnx_case(name, {"x": floats(3, 4), "i": label}, -4, 4, reduction="none")
        whole = np.concatenate([low[:1], (low + 10)[:1] % 5], 1)  # as many as the data along all but the axis
        yield onnx_case("Scatter", {"x": x[:1, :, :2], "i": whole, "u": floats(*whole.shape)}, -5, 5, axis=1, opset=10)
    tuples = np.array([[[0, -1], [3, 4]], [[1, 2], [2, -5]]])
    yield onnx_case("GatherND", {"x": x, "i": tuples}, -5, 5)
    yield onnx_case("GatherND", {"x": x[:2], "i": tuples[:, :1, 1:]}, -5, 5, batch_dims=1)
    for reduction in ("none", "add", "mul", "min", "max"):
        inputs = {"x": x, "i": tuples, "u": floats(2, 2, 6)}
        yield onnx_case(f"ScatterND-{reduction}", inputs, -5, 5, reduction=reduction)
    pooled = {"x": floats(1, 1, 2, 2), "i": np.array([[[[0, 2], [4, 5]]]])}
    case = onnx_case("MaxUnpool", pooled, -16, 16, kernel_shape=[2, 2], strides=[2, 2])
    yield replace(case, reference=_unpooled)  # onnxruntime refuses negative ones
    regions = {"x": floats(2, 3, 8, 8), "r": np.float32([[0, 0, 4, 4], [1, 1, 5, 6]]), "i": np.array([1, 0])}
    yield onnx_case("RoiAlign", regions, 0, 2, output_height=2, output_width=2, sampling_ratio=2)


def relax_cases() -> Iterator[Case]:
    """Operators that modules of other frontends hold."""
    op = relax.op
    x = floats(4, 5)
    for dtype in (np.int8, np.uint8, np.int16, np.uint16, np.uint32, np.uint64):
        low = 0 if np.dtype(dtype).kind == "u" else -4
        inputs = {"x": x, "i": np.array([2, 1], dtype)}
        yield relax_case("take", lambda x, i: op.take(x, i, 0), inputs, low, 4, lambda given: given["x"][given["i"]])
    pairs = {"x": x, "j": np.array([0, -1]), "i": np.array([2, 3])}
    yield relax_case("index_tensor", lambda x, j, i: op.index_tensor(x, [j, i]), pairs, -5, 5,
                     lambda given: given["x"][given["j"], given["i"]])  # fmt: skip
    updated = pairs | {"u": floats(2)}
    yield relax_case("index_put", lambda x, j, i, u: op.index_put(x, (j, i), u), updated, -5, 5, _put)
    lengths = {"x": x, "i": np.array([2, 3, 0, 5])}
    yield relax_case("reverse_sequence", lambda x, i: op.reverse_sequence(x, i, 1, 0), lengths, 0, 6, _reversed)
    labels = {"x": x, "w": floats(5), "i": np.array([0, -3, 2, 1])}
    yield relax_case("nn.nll_loss", lambda x, w, i: op.nn.nll_loss(x, i, w, "none", -3), labels, 0, 5, _loss)
    uniform = {"x": np.full((2, 4), 0.25, np.float32), "u": np.float32([[0.3], [0.8]]), "i": np.array([[0], [1]])}
    yield relax_case("multinomial_from_uniform", lambda x, u, i: op.multinomial_from_uniform(x, u, i, "int64"),
                     uniform, 0, 2, lambda given: np.array([[1], [3]]))  # fmt: skip
    boxes = {"x": np.float32([[[0, 6 - n, n, 0, n + 1, 1] for n in range(6)]]), "i": np.int32([6])}
    yield relax_case(
        "vision.non_max_suppression",
        lambda x, i: op.vision.non_max_suppression(x, i, relax.const(np.arange(6)[None], "int32")),
        boxes, 0, 7, lambda given: np.where(np.arange(6) < given["i"], np.arange(6), -1)[None],
    )  # fmt: skip


def _unpooled(given: Arrays) -> NDArray[Any]:
    result = np.zeros(16, np.float32)
    result[given["i"].ravel()] = given["x"].ravel()
    return result.reshape(1, 1, 4, 4)


def _put(given: Arrays) -> NDArray[Any]:
    result = given["x"].copy()
    result[given["j"], given["i"]] = given["u"]
    return result


def _reversed(given: Arrays) -> NDArray[Any]:
    result = given["x"].copy()
    for row, length in enumerate(given["i"]):
        result[row, :length] = given["x"][row, :length][::-1]
    return result


def _loss(given: Arrays) -> NDArray[Any]:
    at = given["i"]
    return np.where(at == -3, 0, -np.take_along_axis(given["x"], at[:, None] % 5, 1)[:, 0] * given["w"][at % 5])


def main() -> None:
    """Try all."""
    tries = 0
    for case in (*onnx_cases(), *relax_cases()):
        for said in case.tries():
            tries += 1
            if said:
                sys.stdout.write(f"{said}\n")
                sys.stdout.flush()
    sys.stdout.write(f"{tries} tried\n")


if __name__ == "__main__":
    main()
