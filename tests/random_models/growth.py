"""A model while it grows: its nodes, and of every tensor what it is and what rounding may make of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper

from tests.random_models.drawing import Drawing
from tests.random_models.evaluate import OneNode, UnfitError
from tests.random_models.rounding import SAMPLES, amplitude, amplitude_of_given, is_grid, moved, spread
from tests.random_models.value import AMPLIFIED, Value

MOST_ELEMS = 40_000
MOST_INPUTS = 5
_MOST = {"float16": 2e3, "float32": 1e4, "float64": 1e4}
_MOST_UNSTABLE = 0.05
_MOST_SPREAD = 0.05

MOVES = {
    "Identity", "Reshape", "Transpose", "Flatten", "Squeeze", "Unsqueeze", "Concat", "Split", "Slice", "Pad",
    "Expand", "Tile", "Gather", "GatherElements", "GatherND", "DepthToSpace", "SpaceToDepth", "Trilu",
    "ReverseSequence", "Relu", "Max", "Min", "Where", "MaxPool", "GlobalMaxPool", "Neg", "Abs", "Clip", "ReduceMax",
    "ReduceMin", "TopK", "ConstantOfShape", "OneHot", "Hardmax",
}  # fmt: skip
"""Operators that give elements of their operands: nothing to round, but that their copy may be kept narrower."""
_OVERFLOWS = {
    "Add", "Sub", "Mul", "Pow", "Sum", "MatMul", "Einsum", "CumSum", "ReduceSum", "ReduceProd", "ReduceL1",
    "ReduceSumSquare", "ReduceMean",
}  # fmt: skip
"""Operators on integers whose results may leave the dtype."""
_EXACT = MOVES | {
    "Add", "Sub", "Mul", "MatMul", "Gemm", "Conv", "ConvTranspose", "ReduceSum", "Sum", "Cast", "CastLike", "Einsum",
    "CumSum", "Floor", "Ceil", "Round", "Sign", "Mod", "ReduceL1", "ReduceSumSquare", "ReduceProd", "ConvInteger",
    "MatMulInteger", "ThresholdedRelu", "ScatterND", "ScatterElements",
}  # fmt: skip
"""Operators whose results are exact if operands and results are numbers of few digits."""
_JUMPS = {
    "Floor", "Ceil", "Round", "Sign", "Mod", "ThresholdedRelu", "Shrink", "QuantizeLinear", "DynamicQuantizeLinear",
    "Hardmax", "OneHot", "QLinearConv", "QLinearMatMul",
}  # fmt: skip
"""Operators on floats whose results jump. Others do where they make integers or booleans of floats."""
_BENDS = {
    "Relu", "LeakyRelu", "PRelu", "Elu", "Celu", "Selu", "Clip", "HardSigmoid", "HardSwish", "Abs", "Max", "Min",
    "MaxPool", "GlobalMaxPool", "ReduceMax", "ReduceMin",
}  # fmt: skip
"""Operators whose slope jumps, so that samples on this side say nothing of what lies close by on the other one."""
_POSITION = 2.0**-20  # some roundings of numbers of up to 64, in float32; neighbours differ by the largest element
_BY_REFERENCE = {"Resize": _POSITION, "GridSample": _POSITION} | dict.fromkeys(
    ("HardSwish", "HardSigmoid", "Erf", "Gelu", "Elu", "Celu", "Selu"), 2.0**-23
)
"""How far onnxruntime is off, of the largest element: its positions between elements, its 1 / 6, its numbers in erf and
its exp(x) - 1 are float32, those of float64 tensors too."""
_LESS_MEANS = {"LayerNormalization", "InstanceNormalization", "GroupNormalization", "MeanVarianceNormalization"}
"""Operators that subtract a mean, rounded by itself: of equal elements something is left, which they enlarge."""
_PRODUCTS = {"MatMul", "Gemm", "Conv", "ConvTranspose", "Einsum", "CumSum", "ReduceSum", "ReduceMean", "Sum", "Mean"}
"""Operators that the PE array may compute, which reads the narrower dtype of the precision."""
_EQUALITIES = {"Equal", "Cast", "CastLike"}
"""Operators that tell one float from all others (a cast to bool nought): rounding hits what samples only pass."""


def _secants(exact: NDArray, far: NDArray) -> NDArray:
    """Samples as far away as rounding moves them, by the mean slope on the way to amplified ones."""
    wide = exact.astype(np.float64)
    return (wide + (far - wide) / AMPLIFIED).astype(exact.dtype)


def _passes(operands: Sequence[Value], number: int) -> NDArray:
    """Where a sample lies on the other side of the second operand, or of nought, than the first one does."""

    def side(arrays: Sequence[NDArray]) -> NDArray:
        first, second = arrays if len(arrays) == 2 else (arrays[0], np.zeros((), arrays[0].dtype))
        return np.sign(first.astype(np.float64) - second)

    return side([v.amplified(number) for v in operands]) * side([v.exact for v in operands]) < 0


@dataclass
class Growth(Drawing):
    """Nodes are evaluated as they are added, so that a step knows the values that it goes on with."""

    opset: int
    mode: str
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    values: dict[str, Value] = field(default_factory=dict)
    inputs: dict[str, Value] = field(default_factory=dict)
    constants: dict[str, Value] = field(default_factory=dict)
    folding: bool = False  # the step at work reads constants only

    def __post_init__(self) -> None:
        self._names = 0

    def attempt(self, step: Callable[["Growth"], Any]) -> bool:
        """Runs a step; if it doesn't fit, nothing of it stays."""
        before = len(self.nodes), dict(self.values), dict(self.inputs), dict(self.constants)
        try:
            step(self)
        except UnfitError:
            del self.nodes[before[0] :]
            self.values, self.inputs, self.constants = before[1:]
            return False
        return True

    # Tensors

    def find(self, fits: Callable[[Value], bool] = lambda _value: True) -> Value:
        """A tensor that there is; one that nobody reads yet, or a late one, more often. Raises UnfitError."""
        found = [v for v in self.values.values() if v.is_constant == self.folding and v.exact.size and fits(v)]
        if not found:
            raise UnfitError("no tensor fits")
        read = {name for node in self.nodes for name in node.input}
        weights = np.array([(1 if v.name in read else 3) * (1 + 2 * i / len(found)) for i, v in enumerate(found)])
        return found[int(self.rng.choice(len(found), p=weights / weights.sum()))]

    def of_dtype(self, dtypes: Sequence[str], rank: int = -1) -> Value:
        """A tensor of one of the dtypes and of that rank (-1: any); a new input where there is none."""
        try:
            return self.find(lambda v: v.dtype in dtypes and rank in (-1, v.rank))
        except UnfitError:
            if self.folding or len(self.inputs) >= MOST_INPUTS:
                raise
        rank = self.draw(1, 4) if rank < 0 else rank
        return self.input(self.random([self.one_of([1, 2, 3, 5, 8, 12]) for _ in range(rank)], self.one_of(dtypes)))

    def floats(self, least_rank: int = 0, most_rank: int = 6, fits: Callable[[Value], bool] = lambda _v: True) -> Value:
        """A float tensor of such a rank."""
        return self.find(lambda v: v.is_float and least_rank <= v.rank <= most_rank and fits(v))

    def numbers(self, least_rank: int = 0, fits: Callable[[Value], bool] = lambda _v: True) -> Value:
        """A tensor of floats, more often, or of int32 or int64."""
        is_float = self.chance(0.75)
        return self.find(
            lambda v: v.rank >= least_rank and (v.is_float == is_float) and (is_float or v.dtype in ("int32", "int64"))
            and fits(v)
        )  # fmt: skip

    def operand(self, shape: Sequence[int], dtype: str | None = None) -> Value:
        """A tensor of that shape: one that there is, a constant or a new input."""
        dtype, kind = dtype or self.main_float, self.draw(0, 9)
        if kind < 5:
            there = [v for v in self.values.values() if v.shape == tuple(shape) and v.dtype == dtype]
            if there and (not self.folding or all(v.is_constant for v in there)):
                return self.one_of(there)
        if kind < 7 or self.folding or len(self.inputs) >= MOST_INPUTS:
            return self.constant(self.random(shape, dtype))
        return self.input(self.random(shape, dtype))

    def constant(self, array: Any) -> Value:
        """An initializer."""
        value = self._leaf("c", np.asarray(array), is_constant=True)
        self.constants[value.name] = value
        return value

    def weight(self, array: NDArray) -> Value:
        """An initializer, sometimes behind a movement that is done at compile time."""
        if array.ndim >= 2 and self.chance(0.15):
            perm = [int(axis) for axis in self.rng.permutation(array.ndim)]
            back = [int(axis) for axis in np.argsort(perm)]
            return self.add("Transpose", self.constant(np.ascontiguousarray(array.transpose(perm))), perm=back)
        if array.ndim and array.shape[0] > 1 and self.chance(0.1):
            cut = self.draw(1, array.shape[0] - 1)
            return self.add("Concat", self.constant(array[:cut]), self.constant(array[cut:]), axis=0)
        return self.constant(array)

    def vector(self, numbers: Sequence[int]) -> Value:
        """An int64 initializer: a shape, axes, pads."""
        return self.constant(np.array([int(number) for number in numbers], np.int64))

    def input(self, array: Any) -> Value:
        """An input of the model."""
        value = self._leaf("x", np.asarray(array), is_constant=False)
        self.inputs[value.name] = value
        return value

    def _leaf(self, letter: str, array: NDArray, is_constant: bool) -> Value:
        if array.size > MOST_ELEMS * 4:
            raise UnfitError("too large")
        samples = None
        if array.dtype.kind == "f" and not is_grid(array):
            samples = np.broadcast_to(array, (SAMPLES, *array.shape))
            by = amplitude(array, self.mode, True) if is_constant else amplitude_of_given(array, self.mode)
            samples = moved(samples, array, by, self.rng)
        return self._keep(Value(self._name(letter), array, samples, is_constant))

    def _at_run_time(self, value: Value) -> Value:
        """A constant as what runs on a chip reads it."""
        if not value.is_constant or value.samples is None or not value.is_float:
            return value
        by = amplitude_of_given(value.exact, self.mode)
        return replace(value, samples=moved(value.samples, value.exact, by, self.rng))

    def _as_multiplied(self, value: Value) -> Value:
        """A value known exactly as the PE array reads it: rounded where the narrower dtype has not its digits."""
        if value.samples is not None or value.dtype != "float32":
            return value
        by = amplitude_of_given(value.exact, self.mode)
        by = np.where(by > amplitude(value.exact, "none", True), by, 0)
        if not by.any():
            return value
        samples = np.broadcast_to(value.exact, (SAMPLES, *value.shape))
        return replace(value, samples=moved(samples, value.exact, by, self.rng))

    def _by_itself(self, value: Value) -> Value:
        """A value each element of which is rounded by itself, as are those that are copies of one number."""
        samples = np.broadcast_to(value.exact, (SAMPLES, *value.shape)) if value.samples is None else value.samples
        return replace(value, samples=moved(samples, value.exact, amplitude(value.exact, "none", True), self.rng))

    def _name(self, letter: str) -> str:
        self._names += 1
        return f"{letter}{self._names}"

    def _keep(self, value: Value) -> Value:
        self.values[value.name] = value
        return value

    # Nodes

    def add(self, op: str, *inputs: Value | None, **attributes: Any) -> Value:
        """A node with one output. Raises UnfitError."""
        return self.add_many(op, inputs, 1, **attributes)[0]

    def add_many(self, op: str, inputs: Sequence[Value | None], outputs: int, **attributes: Any) -> list[Value]:
        """A node. Raises UnfitError: it is not valid, or its results are too large, not finite or not determined."""
        names = [self._name(op.lower()) for _ in range(outputs)]
        node = helper.make_node(op, [v.name if v else "" for v in inputs], names, name=f"n_{names[0]}", **attributes)
        operands = {v.name: v for v in inputs if v is not None}
        results = self._evaluate(node, operands)
        self.nodes.append(node)
        return [self._keep(value) for value in results]

    def _evaluate(self, node: onnx.NodeProto, operands: Mapping[str, Value]) -> list[Value]:
        is_constant = all(v.is_constant for v in operands.values())
        if not is_constant:
            operands = {name: self._at_run_time(value) for name, value in operands.items()}
            if node.op_type in _PRODUCTS:
                operands = {name: self._as_multiplied(value) for name, value in operands.items()}
        if node.op_type in _LESS_MEANS:
            operands = {**operands, node.input[0]: self._by_itself(operands[node.input[0]])}
        fixed = {n: v.exact for n, v in operands.items() if v.is_constant and v.samples is None}
        loose = {n: v for n, v in operands.items() if n not in fixed}
        run = OneNode(node, {n: v.exact for n, v in loose.items()}, fixed, self.opset)
        exact = run({n: v.exact for n, v in loose.items()})
        run.check({n: v.exact for n, v in loose.items()}, exact)
        for array in exact:
            self._check(array)
        if exact[0].dtype == np.int32 and node.op_type in _OVERFLOWS:
            self._check_digits(node, operands, exact[0])
        if node.op_type == "ReduceProd":
            self._check_factors(node, operands)
        if all(v.samples is None for v in loose.values()):
            results = [None] * len(exact)
        else:
            results = self._samples(node, run, loose, exact)
        return [
            self._rounded(node, name, array, samples, is_constant)
            for name, array, samples in zip(node.output, exact, results, strict=True)
        ]

    def _check(self, array: NDArray) -> None:
        if array.size > MOST_ELEMS or not array.size:
            raise UnfitError("too large or empty")
        if array.dtype.kind == "f" and not (np.abs(array) <= _MOST[str(array.dtype)]).all():
            raise UnfitError("not finite, or too large to go on with")
        if array.dtype.kind in "iu" and not (np.abs(array.astype(np.float64)) < 2**31 - 200).all():
            raise UnfitError("more than the 32 bits of a device's integers, or at their end, where some saturate")

    def _check_digits(self, node: onnx.NodeProto, operands: Mapping[str, Value], exact: NDArray) -> None:
        long = {n: v.exact.astype(np.int64) if v.dtype == "int32" else v.exact for n, v in operands.items()}
        if (OneNode(node, long, {}, self.opset)(long)[0] != exact).any():
            raise UnfitError("it leaves the 32 bits of its dtype, which the standard does not define")

    def _check_factors(self, node: onnx.NodeProto, operands: Mapping[str, Value]) -> None:
        """That its factors of 1 and more have a product in the dtype: a 0 comes before or after them."""
        large = {n: v.exact for n, v in operands.items()}
        data = large[node.input[0]]
        large[node.input[0]] = np.maximum(np.abs(data), 1).astype(data.dtype)
        self._check(OneNode(node, large, {}, self.opset)(large)[0])

    def _samples(
        self, node: onnx.NodeProto, run: OneNode, loose: Mapping[str, Value], exact: Sequence[NDArray]
    ) -> list[NDArray | None]:
        def jumps(array: NDArray) -> bool:
            return array.dtype.kind != "f" or node.op_type in _JUMPS

        rows = [run({n: v.sample(k) for n, v in loose.items()}) for k in range(SAMPLES)]
        far = rows
        if any(map(jumps, exact)) or node.op_type in _BENDS:
            far = [run({n: v.amplified(k) for n, v in loose.items()}) for k in range(SAMPLES)]
            if exact[0].dtype == bool and node.op_type in _EQUALITIES:
                operands = [self.values[name] for name in node.input[: 2 if node.op_type == "Equal" else 1]]
                far = [[truth[0] ^ _passes(operands, k)] for k, truth in enumerate(far)]
        found: list[NDArray | None] = []
        for number, array in enumerate(exact):
            samples = [row[number] for row in (far if jumps(array) else rows)]
            if any(sample.shape != array.shape for sample in samples):
                raise UnfitError("its shape depends on rounding")
            samples = np.stack(samples)
            if jumps(array):
                unstable = float(np.mean((samples != array).any(axis=0)))
                if unstable > _MOST_UNSTABLE:
                    raise UnfitError("it jumps too often")
                found.append(samples if unstable else None)
            elif node.op_type in _BENDS:
                found.append(_secants(array, np.stack([row[number] for row in far])))
            else:
                found.append(samples)
        return found

    def _rounded(
        self, node: onnx.NodeProto, name: str, exact: NDArray, samples: NDArray | None, is_constant: bool
    ) -> Value:
        if exact.dtype.kind != "f":
            return Value(name, exact, samples, is_constant)
        if samples is None and node.op_type in _EXACT and is_grid(exact):
            return Value(name, exact, None, is_constant)
        if samples is None:
            samples = np.broadcast_to(exact, (SAMPLES, *exact.shape))
        if node.op_type in MOVES:
            if exact.dtype == np.float32 and self.mode != "none" and not is_constant:
                samples = moved(samples, exact, amplitude_of_given(exact, self.mode), self.rng)
        else:
            by = amplitude(exact, self.mode, is_constant) + np.abs(exact).max() * _BY_REFERENCE.get(node.op_type, 0)
            if node.op_type == "Resize":  # its weights are rounded, too, and may cancel each other
                by = np.broadcast_to(by.max(), by.shape)
            if node.op_type == "LogSoftmax":  # less the sums of what may be a narrower copy of its operand
                by = by + amplitude(self.values[node.input[0]].exact, self.mode, is_constant)
            samples = moved(samples, exact, by, self.rng)
        apart, size = np.sqrt(np.mean(spread(samples, exact) ** 2)), np.sqrt(np.mean(exact.astype(np.float64) ** 2))
        if not apart <= _MOST_SPREAD * size:
            raise UnfitError("ill-conditioned")
        return Value(name, exact, samples, is_constant)
