"""Random chains of constants in many dtypes and with odd values, and what onnxruntime makes of each operator."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import helper, numpy_helper

Array = NDArray[Any]

FLOATS = ("float32", "float16", "float64")
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
_CODES = {name: helper.np_dtype_to_tensor_dtype(np.dtype(name)) for name in (*FLOATS, *INTEGERS, "bool")}
OPSETS = (11, 13, 17, 18, 21)

_UNARY = (
    "Abs", "Neg", "Sqrt", "Exp", "Log", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh",
    "Atanh", "Tanh", "Sigmoid", "Erf", "Floor", "Ceil", "Round", "Reciprocal", "Relu", "LeakyRelu", "Elu", "Celu",
    "Selu", "Softplus", "Softsign", "HardSigmoid", "HardSwish", "Mish", "Gelu", "ThresholdedRelu", "Sign", "IsNaN",
    "IsInf", "Not", "BitwiseNot", "Identity", "Shrink",
)  # fmt: skip
_OF_SMALL = ("Shrink", "Asinh", "Acosh", "Sin", "Cos", "Tan", "Softmax", "LogSoftmax", "CumSum")
"""Of large numbers onnxruntime's own loses digits, or ours squares or turns them, or multiplies them by 0 and 1."""
_BINARY = (
    "Add", "Sub", "Mul", "Div", "Pow", "Mod", "Min", "Max", "Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual",
    "And", "Or", "Xor", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitShift", "PRelu", "Sum", "Mean",
)  # fmt: skip
_REDUCE = ("Sum", "Mean", "Max", "Min", "L1", "SumSquare", "Prod", "L2", "LogSum", "LogSumExp")
_OF_FLOATS = 4  # so many of them, the last, only of floats


@dataclass(frozen=True)
class Step:
    """A node, and what onnxruntime makes of it."""

    node: onnx.NodeProto
    results: dict[str, Array]


class RandomConstants:
    """`steps` operators on constants, drawn with `seed`. A node that onnxruntime refuses is drawn again."""

    def __init__(self, seed: int, steps: int = 6) -> None:
        self.seed = seed
        self.rng = np.random.default_rng(seed)
        self.opset = int(self.rng.choice(OPSETS))
        self.values: dict[str, Array] = {}
        self.steps: list[Step] = []
        self.constants: dict[str, Array] = {}
        self.given: dict[str, Array] = {}
        for _ in range(int(self.rng.integers(1, 4))):
            self._new(self._array())
        self._settle()
        while len(self.steps) < steps:
            self._try()

    def model(self) -> onnx.ModelProto:
        """All of it; every result is an output."""
        nodes = [_constant(name, value) for name, value in self.constants.items()]
        nodes += [step.node for step in self.steps]
        outputs = {name: value for step in self.steps for name, value in step.results.items()}
        return _model(nodes, outputs, self.opset)

    def _try(self) -> None:
        self.given = {}
        maker = MAKERS[self.rng.integers(len(MAKERS))]
        node = maker(self)
        known = {**self.values, **self.given}
        if node is None or any(known[name].size > 4000 for name in node.input if name):
            return
        number = len(self.steps)
        node.name = f"{node.op_type}{number}"
        del node.output[:]
        node.output.extend([f"v{number}.{i}" for i in range(_OUTPUTS.get(node.op_type, 1))])
        results = run_node(node, {name: known[name] for name in node.input if name}, self.opset)
        if results is None or any(value.size > 4000 for value in results.values()):
            return
        self._settle()
        self.values |= results
        self.steps.append(Step(node, results))

    def _settle(self) -> None:
        """Keeps the constants drawn for a node."""
        self.values |= self.given
        self.constants |= self.given
        self.given = {}

    # what makers draw

    def choice(self, options: Sequence[Any]) -> Any:
        return options[self.rng.integers(len(options))]

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def shape(self, most: int = 4) -> tuple[int, ...]:
        if self.chance(0.06):
            return tuple(int(n) for n in self.rng.choice([0, 1, 3], self.rng.integers(1, 4)))
        return tuple(int(n) for n in self.rng.choice([1, 2, 3, 4, 5, 7, 8, 12, 33], self.rng.integers(0, most + 1)))

    def _array(self) -> Array:
        while True:
            shape = self.shape()
            if np.prod(shape, dtype=int) <= 1500:
                return self.filled(shape, self.dtype())

    def dtype(self) -> str:
        return str(self.rng.choice(["float32"] * 5 + [*FLOATS, *INTEGERS, "bool", "int32", "int64", "uint8"]))

    def filled(self, shape: Sequence[int], dtype: str) -> Array:
        """Random values of the dtype, with infinities, NaN, zeros of both signs and limits among them."""
        shape = tuple(shape)
        if dtype == "bool":
            return self.rng.integers(0, 2, shape).astype(bool)
        if dtype in INTEGERS:
            limits = np.iinfo(dtype)
            small = self.rng.integers(max(limits.min, -9), 10, shape).astype(dtype)
            odd = self.rng.choice(np.array([limits.min, limits.max, limits.max // 3, 0], dtype), shape)
            return np.where(self.rng.random(shape) < (0.1 if self.chance(0.4) else 0), odd, small).astype(dtype)
        values = self.rng.standard_normal(shape) * self.choice([1, 1, 1, 5, 60])
        if self.chance(0.25):
            values = np.round(values * 2) / 2
        odd = self.rng.choice([np.inf, -np.inf, np.nan, 0.0, -0.0, 1e30, -1e-30], shape)
        with np.errstate(over="ignore"):
            return np.where(self.rng.random(shape) < (0.15 if self.chance(0.3) else 0), odd, values).astype(dtype)

    def pick(self, *kinds: str, rank: int | None = None) -> str | None:
        """The name of a value of one of the dtypes, the newest ones first of all; None if there is none."""
        found = [
            name
            for name, value in self.values.items()
            if (not kinds or value.dtype.name in kinds) and (rank is None or value.ndim >= rank)
        ]
        if not found:
            return None
        return str(found[-1] if self.chance(0.5) else self.choice(found))

    def value(self, name: str) -> Array:
        return self.values[name] if name in self.values else self.given[name]

    def new(self, value: Array) -> str:
        return self._new(np.asarray(value))

    def _new(self, value: Array) -> str:
        name = f"c{len(self.constants) + len(self.given)}"
        self.given[name] = value
        return name

    def like(self, name: str) -> str:
        """Another operand that broadcasts against a value: one of the pool, or new."""
        value = self.value(name)
        others = [
            other
            for other, found in self.values.items()
            if found.dtype == value.dtype and _broadcasts(found.shape, value.shape)
        ]
        if others and self.chance(0.5):
            return str(self.choice(others))
        shape = [1 if self.chance(0.2) else n for n in value.shape][self.rng.integers(0, value.ndim + 1) :]
        return self._new(self.filled(shape, value.dtype.name))

    def has_nan(self, name: str) -> bool:
        return self.value(name).dtype.kind == "f" and bool(np.isnan(self.value(name)).any())

    def is_small(self, name: str) -> bool:
        """Whether no sum or product of some values leaves its dtype."""
        return bool(np.all(np.abs(self.value(name).astype(np.float64)) < 100))

    def ints(self, *values: int) -> str:
        return self._new(np.array(values, np.int64))

    def axis(self, name: str) -> int:
        rank = max(self.value(name).ndim, 1)
        return int(self.rng.integers(-rank, rank))


def _broadcasts(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    try:
        np.broadcast_shapes(a, b)
    except ValueError:
        return False
    return True


def _constant(name: str, value: Array) -> onnx.NodeProto:
    return helper.make_node("Constant", [], [name], name=name, value=numpy_helper.from_array(value, name))


def _model(nodes: Sequence[onnx.NodeProto], outputs: dict[str, Array], opset: int) -> onnx.ModelProto:
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in outputs.items()
    ]
    graph = helper.make_graph(nodes, "constants", [], infos)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def run_node(node: onnx.NodeProto, operands: dict[str, Array], opset: int) -> dict[str, Array] | None:
    """What onnxruntime makes of one node; None where it can't."""
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in operands.items()
    ]
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output]
    graph = helper.make_graph([node], "one", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options)
        results = session.run(None, operands)
    except Exception:
        return None
    return {name: np.asarray(value) for name, value in zip(node.output, results, strict=True)}


Maker = Callable[[RandomConstants], onnx.NodeProto | None]


def _unary(r: RandomConstants) -> onnx.NodeProto | None:
    name, op = r.pick(), r.choice(_UNARY)
    if name is None or (op == "Sign" and r.has_nan(name)):
        return None
    if op in _OF_SMALL and not r.is_small(name):
        return None
    return helper.make_node(op, [name], [""])


def _binary(r: RandomConstants) -> onnx.NodeProto | None:
    name = r.pick()
    op = r.choice(_BINARY)
    if name is None:
        return None
    other = r.like(name)
    value = r.value(other)
    attributes = {}
    dtype = value.dtype
    if op == "PRelu" and not np.all(np.isfinite(value)):
        return None  # a slope is multiplied by zero where it does not count
    if dtype.kind in "iu" and op in ("Div", "Mod", "Pow", "BitShift"):  # without what C++ leaves open
        if dtype.kind == "i" and np.any(r.value(name) == np.iinfo(dtype).min):
            return None
        is_divisor = op in ("Div", "Mod")
        amounts = np.abs(value.astype(np.int64)) % 6 + is_divisor
        signs = r.rng.choice([-1, 1], value.shape) if is_divisor and dtype.kind == "i" else 1
        other = r.new((amounts * signs).astype(dtype))
    if op == "BitShift":
        attributes["direction"] = r.choice(["LEFT", "RIGHT"])
    if op == "Mod":
        attributes["fmod"] = int(dtype.kind == "f" or r.chance(0.3))
    operands = [name, other, name] if op == "Sum" and r.chance(0.5) else [name, other]
    return helper.make_node(op, operands, [""], **attributes)


def _where(r: RandomConstants) -> onnx.NodeProto | None:
    name = r.pick()
    if name is None:
        return None
    shape = r.value(name).shape
    condition = r.pick("bool")
    if condition is None or not _broadcasts(r.value(condition).shape, shape) or r.chance(0.5):
        condition = r.new(r.filled([n if r.chance(0.8) else 1 for n in shape], "bool"))
    operands = [name, r.like(name)]
    return helper.make_node("Where", [condition, *(operands if r.chance(0.5) else operands[::-1])], [""])


def _clip(r: RandomConstants) -> onnx.NodeProto | None:
    name = r.pick()
    if name is None:
        return None
    dtype = r.value(name).dtype
    low = r.new(np.array(1 if dtype.kind == "u" else -2, dtype))
    high = r.new(np.array(5, dtype))
    if not r.is_small(name):
        return helper.make_node("Clip", [name, low, high], [""])
    return helper.make_node("Clip", r.choice([[name, low, high], [name, "", high], [name, low]]), [""])


def _cast(r: RandomConstants) -> onnx.NodeProto | None:
    name = r.pick()
    target = r.dtype()
    if name is None:
        return None
    value = r.value(name)
    if value.dtype.kind == "f" and target != "bool" and target not in FLOATS:
        limits = np.iinfo(target)
        low, high = (0, 100) if target.startswith("u") else (-100, 100)
        if not np.all(np.isfinite(value)) or np.any(value < low) or np.any(value > min(high, limits.max)):
            return None  # what C++ leaves open
    return helper.make_node("Cast", [name], [""], to=_CODES[target])


def _concat(r: RandomConstants) -> onnx.NodeProto | None:
    name = r.pick(rank=1)
    if name is None:
        return None
    value, axis = r.value(name), r.axis(name)
    parts = [name]
    for _ in range(r.rng.integers(1, 4)):
        extent = int(r.choice([0, 1, 5, 7, 40]))
        shape = [extent if d == axis % value.ndim else n for d, n in enumerate(value.shape)]
        parts.append(r.new(r.filled(shape, value.dtype.name)))
    r.rng.shuffle(parts)
    return helper.make_node("Concat", parts, [""], axis=axis)


def _split(r: RandomConstants) -> onnx.NodeProto | None:
    name = r.pick(rank=1)
    if name is None:
        return None
    axis = r.axis(name)
    extent = r.value(name).shape[axis]
    sizes = (extent // 3, extent - extent // 3)
    if r.opset < 13:
        return helper.make_node("Split", [name], ["", ""], axis=axis, split=sizes)
    return helper.make_node("Split", [name, r.ints(*sizes)], ["", ""], axis=axis)


def _slice(r: RandomConstants) -> onnx.NodeProto | None:
    name = r.pick(rank=1)
    if name is None:
        return None
    rank = r.value(name).ndim
    axes = sorted(r.rng.choice(rank, r.rng.integers(1, rank + 1), replace=False).tolist())
    steps = [int(r.rng.choice([1, 1, 2, 3, -1, -2])) for _ in axes]
    starts = [int(r.rng.integers(-4, 5)) if step > 0 else r.choice([-1, 9999]) for step in steps]
    ends = [int(r.rng.choice([9999, -1, 3])) if step > 0 else r.choice([-9999, 0]) for step in steps]
    return helper.make_node("Slice", [name, *(r.ints(*part) for part in (starts, ends, axes, steps))], [""])


def _indices(r: RandomConstants, shape: Sequence[int], extent: int) -> str:
    dtype = np.int64 if r.chance(0.6) else np.int32
    return r.new(r.rng.integers(-extent, extent, tuple(shape)).astype(dtype))


def _gather(r: RandomConstants) -> onnx.NodeProto | None:
    name = r.pick(rank=1)
    if name is None or 0 in r.value(name).shape:
        return None
    value, axis = r.value(name), r.axis(name)
    extent = value.shape[axis]
    if r.chance(0.5):
        return helper.make_node("Gather", [name, _indices(r, r.shape(2), extent)], [""], axis=axis)
    shape = [int(r.rng.integers(1, 6)) if d == axis % value.ndim else n for d, n in enumerate(value.shape)]
    return helper.make_node("GatherElements", [name, _indices(r, shape, extent)], [""], axis=axis)


def _places(r: RandomConstants, shape: Sequence[int]) -> Array:
    """Different indices of the leading dimensions of a shape: [count, dimensions]."""
    depth = int(r.rng.integers(1, len(shape) + 1))
    all_places = np.stack(np.unravel_index(np.arange(np.prod(shape[:depth])), shape[:depth]), -1)
    count = int(r.rng.integers(1, min(len(all_places), 9) + 1))
    chosen = all_places[r.rng.permutation(len(all_places))[:count]].astype(np.int64)
    return np.where(r.rng.random(chosen.shape) < 0.3, chosen - np.array(shape[:depth]), chosen)


def _nd(r: RandomConstants) -> onnx.NodeProto | None:
    name = r.pick(rank=1)
    if name is None or 0 in r.value(name).shape:
        return None
    value = r.value(name)
    places = _places(r, value.shape)
    if r.chance(0.4):
        return helper.make_node("GatherND", [name, r.new(places)], [""])
    updates = r.new(r.filled((len(places), *value.shape[places.shape[1] :]), value.dtype.name))
    return helper.make_node("ScatterND", [name, r.new(places), updates], [""], **_reduction(r, 16, name, updates))


def _reduction(r: RandomConstants, since: int, *operands: str) -> dict[str, str]:
    kinds = ["add", "mul", "max", "min"] if r.opset >= 18 else ["add", "mul"]
    is_usual = r.opset >= since and not any(map(r.has_nan, operands))
    return {"reduction": r.choice(kinds)} if is_usual and r.chance(0.5) else {}


def _scatter(r: RandomConstants) -> onnx.NodeProto | None:
    name = r.pick(rank=1)
    if name is None or 0 in r.value(name).shape:
        return None
    value, axis = r.value(name), r.axis(name)
    count = int(r.rng.integers(1, value.shape[axis] + 1))
    shape = [count if d == axis % value.ndim else n for d, n in enumerate(value.shape)]
    order = np.argsort(r.rng.random(value.shape), axis)  # each position once
    places = np.take(order, np.arange(count), axis)
    places = np.where(r.rng.random(places.shape) < 0.3, places - value.shape[axis], places)
    updates = r.new(r.filled(shape, value.dtype.name))
    operands = [name, r.new(places.astype(np.int64)), updates]
    return helper.make_node("ScatterElements", operands, [""], axis=axis, **_reduction(r, 16, name, updates))


def _pad(r: RandomConstants) -> onnx.NodeProto | None:
    name = r.pick(rank=1)
    if name is None:
        return None
    value = r.value(name)
    mode = r.choice(["constant", "constant", "reflect", "edge", "wrap"])
    low = -1 if mode == "constant" else 0
    pads = r.rng.integers(low, 4, 2 * value.ndim)
    if mode != "constant":
        pads = np.minimum(pads, np.array([n - 1 for n in value.shape] * 2))
        if 0 in value.shape or np.any(pads < 0):
            return None
    operands = [name, r.ints(*pads.tolist())]
    if mode == "constant" and r.chance(0.6):
        operands.append(r.new(r.filled((), value.dtype.name)))
    return helper.make_node("Pad", operands, [""], mode=mode)


def _shapes(r: RandomConstants) -> onnx.NodeProto | None:
    name = r.pick(rank=1)
    if name is None:
        return None
    value = r.value(name)
    match r.rng.integers(9):
        case 0:
            return helper.make_node("Transpose", [name], [""], perm=r.rng.permutation(value.ndim).tolist())
        case 1:
            return helper.make_node("Reshape", [name, r.ints(-1)], [""])
        case 2:
            return helper.make_node("Tile", [name, r.ints(*r.rng.integers(1, 4, value.ndim).tolist())], [""])
        case 3:
            shape = [int(r.rng.integers(1, 4)), *(n if n != 1 else int(r.rng.integers(1, 5)) for n in value.shape)]
            return helper.make_node("Expand", [name, r.ints(*shape)], [""])
        case 4:
            return helper.make_node("Shape", [name], [""])
        case 5:
            return helper.make_node("Flatten", [name], [""], axis=int(r.rng.integers(0, value.ndim + 1)))
        case 6:
            axis = int(r.rng.integers(0, value.ndim + 1))
            if r.opset < 13:
                return helper.make_node("Unsqueeze", [name], [""], axes=[axis])
            return helper.make_node("Unsqueeze", [name, r.ints(axis)], [""])
        case 7:
            shift = r.new(np.array(r.rng.integers(-2, 3)))
            return helper.make_node("Trilu", [name, shift], [""], upper=int(r.chance(0.5)))
        case _:
            return helper.make_node("Size", [name], [""])


def _reduce(r: RandomConstants) -> onnx.NodeProto | None:
    name = r.pick(rank=1)
    if name is None:
        return None
    is_whole = r.value(name).dtype.kind in "iu"
    if is_whole and (not r.is_small(name) or not r.value(name).size):
        return None  # overflows, which C++ leaves open
    op = f"Reduce{r.choice(_REDUCE[: -_OF_FLOATS if is_whole else None])}"
    rank, keep = r.value(name).ndim, int(r.chance(0.5))
    if op in ("ReduceMax", "ReduceMin", "ReduceLogSumExp") and r.has_nan(name):
        return None
    axes = r.rng.choice(rank, r.rng.integers(1, rank + 1), replace=False).tolist()
    if r.opset >= 18 or (op == "ReduceSum" and r.opset >= 13):
        return helper.make_node(op, [name, r.ints(*axes)], [""], keepdims=keep)
    return helper.make_node(op, [name], [""], axes=axes, keepdims=keep)


def _along(r: RandomConstants) -> onnx.NodeProto | None:
    name = r.pick(rank=1)
    if name is None:
        return None
    op, axis = r.choice(["Softmax", "LogSoftmax", "Hardmax", "ArgMax", "ArgMin", "CumSum", "TopK"]), r.axis(name)
    value = r.value(name)
    if op in ("ArgMax", "ArgMin", "Hardmax") and r.has_nan(name):
        return None
    if op in ("ArgMax", "ArgMin"):
        last = {"select_last_index": int(r.chance(0.3))} if r.opset >= 12 else {}
        return helper.make_node(op, [name], [""], axis=axis, keepdims=int(r.chance(0.5)), **last)
    if op in _OF_SMALL and not r.is_small(name):
        return None
    if op == "CumSum":
        axis_of = r.new(np.array(axis, np.int64))
        ways = {"exclusive": int(r.chance(0.5)), "reverse": int(r.chance(0.5))}
        return helper.make_node("CumSum", [name, axis_of], [""], **ways)
    if op == "TopK":
        if np.unique(value).size < value.size or np.any(np.isnan(value.astype(float))):
            return None
        count = r.ints(int(r.rng.integers(1, max(value.shape[axis], 1) + 1)))
        return helper.make_node("TopK", [name, count], ["", ""], axis=axis, largest=int(r.chance(0.5)))
    return helper.make_node(op, [name], [""], axis=axis)


def _made(r: RandomConstants) -> onnx.NodeProto | None:
    """Constants that a node makes of sizes."""
    match r.rng.integers(4):
        case 0:
            value = numpy_helper.from_array(r.filled((1,), r.choice(["float32", "int64", "bool", "int32"])))
            return helper.make_node("ConstantOfShape", [r.ints(*r.shape(3))], [""], value=value)
        case 1:
            dtype = r.choice(["float32", "int64", "int32"])
            ends = [r.new(np.array(v, dtype)) for v in (int(r.rng.integers(-3, 3)), int(r.rng.integers(4, 20)), 2)]
            return helper.make_node("Range", ends, [""])
        case 2:
            places, values = r.rng.integers(-5, 5, (3, 4)), r.filled((2,), r.choice(["float32", "int64", "int32"]))
            operands = [r.new(places), r.new(np.array(5, np.int64)), r.new(values)]
            return helper.make_node("OneHot", operands, [""], axis=int(r.rng.integers(-1, 3)))
        case _:
            name = r.pick(rank=2)
            if name is None or r.value(name).ndim != 2:
                return None
            return helper.make_node("EyeLike", [name], [""], k=int(r.rng.integers(-2, 3)))


def _quantise(r: RandomConstants) -> onnx.NodeProto | None:
    name = r.pick("float32", "int8", "uint8", rank=1)
    if name is None:
        return None
    value = r.value(name)
    axis = r.axis(name) % value.ndim
    shape = () if r.chance(0.5) or r.opset < 13 else (value.shape[axis],)
    scale = r.new(r.rng.uniform(0.01, 2, shape).astype(np.float32))
    attributes = {"axis": axis} if r.opset >= 13 else {}
    if value.dtype.kind == "f":
        if not np.all(np.abs(value) < 1e6):
            return None
        zero = r.new(r.rng.integers(0, 90, shape).astype(r.choice(["int8", "uint8"])))
        return helper.make_node("QuantizeLinear", [name, scale, zero], [""], **attributes)
    zero = r.new(r.rng.integers(0, 90, shape).astype(value.dtype))
    return helper.make_node("DequantizeLinear", [name, scale, zero][: 3 if r.chance(0.8) else 2], [""], **attributes)


def _products(r: RandomConstants) -> onnx.NodeProto | None:
    name = r.pick("float32", "float64", "int32", rank=2)
    if name is None:
        return None
    value = r.value(name)
    if not np.all(np.abs(value.astype(float)) < 1e4):
        return None
    depth = value.shape[-1]
    other = r.new(r.filled((depth, int(r.rng.integers(1, 9))), value.dtype.name))
    if not np.all(np.abs(r.value(other).astype(float)) < 1e4):
        return None
    if value.ndim == 2 and value.dtype.kind == "f" and r.chance(0.4):
        scales = {"alpha": 0.5, "beta": 2.0}
        return helper.make_node("Gemm", [name, other], [""], **scales)
    return helper.make_node("MatMul", [name, other], [""])


def _images(r: RandomConstants) -> onnx.NodeProto | None:
    shape = (1, int(r.choice([4, 8])), int(r.rng.integers(4, 8)), int(r.rng.integers(4, 8)))
    name = r.new(r.filled(shape, "float32"))
    match r.rng.integers(7):
        case 0:
            return helper.make_node("DepthToSpace", [name], [""], blocksize=2, mode=r.choice(["DCR", "CRD"]))
        case 1:
            return helper.make_node("SpaceToDepth", [name], [""], blocksize=2)
        case 2:
            op = "AveragePool" if r.has_nan(name) else r.choice(["MaxPool", "AveragePool"])
            return helper.make_node(op, [name], [""], kernel_shape=[3, 2], pads=[1, 0, 1, 1], strides=[2, 1])
        case 3:
            weights = r.new(r.rng.standard_normal((3, shape[1], 3, 3)).astype(np.float32))
            if not np.all(np.isfinite(r.value(name))):
                return None
            return helper.make_node("Conv", [name, weights], [""], pads=[1, 1, 1, 1], dilations=[1, 2])
        case 4:
            sizes = r.ints(1, shape[1], *(int(n) for n in r.rng.integers(2, 12, 2)))
            mode = r.choice(["nearest", "linear"])
            if not np.all(np.isfinite(r.value(name))):
                return None
            where = r.choice(["half_pixel", "asymmetric", "align_corners"])
            return helper.make_node(
                "Resize", [name, "", "", sizes], [""], mode=mode, coordinate_transformation_mode=where
            )
        case 5:
            rank = int(r.rng.integers(3, 6))
            name = r.new(r.filled((2, 3, 4, 2, 3)[:rank], "float32"))
            if r.has_nan(name):
                return None
            return helper.make_node(r.choice(["GlobalMaxPool", "GlobalAveragePool"]), [name], [""])
        case _:
            scale, bias, mean = (r.new(r.rng.standard_normal(shape[1]).astype("f")) for _ in range(3))
            spread = r.new(r.rng.uniform(0.5, 2, shape[1]).astype("f"))
            return helper.make_node("BatchNormalization", [name, scale, bias, mean, spread], [""])


MAKERS: tuple[Maker, ...] = (
    _unary, _unary, _binary, _binary, _binary, _where, _clip, _cast, _cast, _concat, _concat, _split, _slice, _gather,
    _nd, _nd, _scatter, _pad, _shapes, _shapes, _reduce, _reduce, _along, _made, _quantise, _products, _images,
)  # fmt: skip
_OUTPUTS = {"Split": 2, "TopK": 2}
