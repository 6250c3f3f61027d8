"""Arithmetic on elements: floats, integers, booleans, comparisons and Where, mixed."""

import numpy as np

from tests.random_models.growth import Growth
from tests.random_models.value import Value

_ANY = (
    "Abs", "Neg", "Relu", "Sigmoid", "Tanh", "Softplus", "Softsign", "Elu", "Selu", "Celu", "LeakyRelu",
    "HardSigmoid", "HardSwish", "Mish", "Gelu", "Erf", "Sin", "Cos", "Atan", "Asinh", "ThresholdedRelu", "Clip",
    "Shrink", "Floor", "Ceil", "Round", "Sign", "Exp", "Sinh", "Cosh", "Identity",
)  # fmt: skip
_POSITIVE = ["Log", "Sqrt", "Reciprocal"]
_WITHIN_ONE = ["Asin", "Acos", "Atanh"]
_SINCE = {"Mish": 18, "Gelu": 20, "HardSwish": 14}
_WITH_ALPHA = ("Elu", "Celu", "LeakyRelu", "ThresholdedRelu", "Selu")


def unary(g: Growth) -> None:
    op = g.one_of(_ANY)
    if g.opset < _SINCE.get(op, 0):
        op = "Relu"
    x = g.floats()
    attributes: dict[str, object] = {}
    if op in _WITH_ALPHA and g.chance(0.6):
        attributes["alpha"] = float(g.one_of([0.01, 0.2, 1.0, 1.5]))
    if op == "HardSigmoid" and g.chance(0.5):
        attributes = {"alpha": 1 / 6, "beta": 0.5}
    if op == "Gelu":
        attributes["approximate"] = g.one_of(["none", "tanh"])
    if op == "Shrink":
        attributes = {"lambd": 0.5, "bias": float(g.one_of([0.0, 0.5, 0.25]))}
    if op == "Clip":
        clip(g, x)
    else:
        g.add(op, x, **attributes)


def clip(g: Growth, x: Value) -> None:
    low, high = (g.constant(np.array(bound, x.exact.dtype)) for bound in g.one_of([(0, 6), (-1, 1), (-2, 0), (1, 3)]))
    g.add("Clip", x, *g.one_of([(low, high), (low,), (None, high)]))


def unary_of_part(g: Growth) -> None:
    """Functions that not every number has."""
    x = g.floats()
    if g.chance(0.5):
        op = g.one_of(_POSITIVE)
        if x.exact.min() < 0.05:
            x = g.add("Add", g.add("Abs", x), g.constant(np.array(g.one_of([0.5, 1.0, 0.1]), x.exact.dtype)))
    else:
        op = g.one_of(_WITHIN_ONE)
        if np.abs(x.exact).max() > 0.95:
            x = g.add("Mul", g.add("Tanh", x), g.constant(np.array(0.9, x.exact.dtype)))
    g.add(op, x)


def partner(g: Growth, x: Value) -> Value:
    """An operand that x can be combined with: of its shape, or broadcast along some dimensions, or itself."""
    kind = g.draw(0, 9)
    if kind == 0:
        return x
    shape = list(x.shape)
    if kind < 6:
        shape = [1 if g.chance(0.4) else extent for extent in shape]
        while shape and g.chance(0.3):
            shape.pop(0)
    return g.operand(shape, x.dtype)


def _pair(g: Growth, x: Value) -> tuple[Value, Value]:
    y = partner(g, x)
    return (x, y) if g.chance(0.6) else (y, x)


def _nonzero(g: Growth, y: Value) -> Value:
    """A divisor that is not near nought."""
    if np.abs(y.exact.astype(np.float64)).min() > 0.2:
        return y
    one = g.constant(np.array(1, y.exact.dtype))
    return g.add("Max", y, one) if g.chance(0.5) else g.add("Add", g.add("Abs", y), one)


def binary(g: Growth) -> None:
    x = g.numbers()
    left, right = _pair(g, x)
    op = g.one_of(["Add", "Add", "Sub", "Mul", "Mul", "Div", "Div", "Min", "Max", "Mod", "Pow", "PRelu"])
    if op == "Div" or op == "Mod":
        right = _nonzero(g, right)
    if op == "Mod":
        g.add("Mod", left, right, fmod=1 if x.is_float else g.draw(0, 1))
    elif op == "Pow":
        exponents = [2, 3, 0.5, -1, 1] if x.is_float else [2, 3, 1]
        exponent = np.array(g.one_of(exponents), g.one_of([x.dtype, x.dtype, "float32" if x.is_float else x.dtype]))
        if exponent < 1:
            x = _nonzero(g, g.add("Abs", x))
        g.add("Pow", x, g.constant(exponent))
    elif op == "PRelu":
        slope = [extent if axis == min(1, x.rank - 1) and g.chance(0.7) else 1 for axis, extent in enumerate(x.shape)]
        g.add("PRelu", x, g.constant(g.random(slope, x.dtype)))
    else:
        g.add(op, left, right)


def several(g: Growth) -> None:
    x = g.floats()
    others = [partner(g, x) for _ in range(g.draw(0, 3))]
    g.add(g.one_of(["Sum", "Mean", "Max", "Min"]), x, *others)


def compare(g: Growth) -> None:
    x = g.numbers() if g.chance(0.8) else g.find(lambda v: v.dtype in ("int8", "uint8"))
    left, right = _pair(g, x)
    g.add(g.one_of(["Less", "Greater", "LessOrEqual", "GreaterOrEqual", "Equal"]), left, right)


def threshold(g: Growth) -> None:
    """A comparison with one number, as masks are made."""
    x = g.numbers()
    middle = np.array(np.median(x.exact.astype(np.float64)) + 0.3, x.exact.dtype)
    g.add(g.one_of(["Less", "Greater", "LessOrEqual", "GreaterOrEqual"]), x, g.constant(middle))


def logic(g: Growth) -> None:
    x = g.of_dtype(("bool",))
    if g.chance(0.3):
        g.add("Not", x)
    else:
        g.add(g.one_of(["And", "Or", "Xor", "Equal"]), *_pair(g, x))


def where(g: Growth) -> None:
    if g.chance(0.6):
        condition = g.find(lambda v: v.dtype == "bool")
        shape = condition.shape
        same = [v.dtype for v in g.values.values() if v.shape == shape and v.dtype != "bool"]
        dtype = g.one_of(same) if same and g.chance(0.7) else g.one_of([g.main_float, "int32", "int64", "float32"])
        left = g.operand(shape, dtype)
        right = partner(g, left)
    else:
        left = g.numbers()
        right = partner(g, left)
        condition = g.operand([1 if g.chance(0.3) else extent for extent in left.shape], "bool")
    g.add("Where", condition, *((left, right) if g.chance(0.5) else (right, left)))


def bits(g: Growth) -> None:
    x = g.of_dtype(("int32", "int64", "uint8", "int8"))
    if g.opset < 18 or (x.dtype == "uint8" and g.chance(0.4)):
        amount = g.constant(g.rng.integers(0, 8, x.shape if g.chance(0.5) else ()).astype(np.uint8))
        if x.dtype != "uint8":
            x = g.operand(x.shape, "uint8")
        g.add("BitShift", x, amount, direction=g.one_of(["LEFT", "RIGHT"]))
    elif g.chance(0.2):
        g.add("BitwiseNot", x)
    else:
        g.add(g.one_of(["BitwiseAnd", "BitwiseOr", "BitwiseXor"]), *_pair(g, x))


def whole(g: Growth) -> None:
    """Integers alone, of any size."""
    x = g.of_dtype(("int32", "int64", "int8", "uint8"))
    op = g.one_of(["Add", "Sub", "Mul", "Div", "Abs", "Neg", "Min", "Max", "Sign"])
    if x.dtype in ("int8", "uint8") and op not in ("Abs", "Min", "Max"):
        op = "Max"  # what onnxruntime has for bytes
    if op in ("Abs", "Neg", "Sign"):
        g.add(op, x)
    else:
        left, right = _pair(g, x)
        g.add(op, left, _nonzero(g, right) if op == "Div" else right)


def odd_numbers(g: Growth) -> None:
    g.add(g.one_of(["IsNaN", "IsInf"]), g.floats())


STEPS = (unary, unary, unary, unary_of_part, binary, binary, binary, several, compare, threshold, logic, where, where,
         bits, whole, whole, odd_numbers)  # fmt: skip
