"""Operations on bits, and what they make exact (choices and comparisons of 32-bit integers), against NumPy."""

from collections.abc import Callable

import numpy as np
import pytest
import tvm
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from tvm import relax

import tvm_neuron
from tests.codegen.test_elementwise import on_core
from tests.onnx_models import make_model
from tvm_neuron import relay
from tvm_neuron.codegen.function import compile_graph
from tvm_neuron.codegen.options import BuildOptions
from tvm_neuron.hw import load_device
from tvm_neuron.program import Origin
from tvm_neuron.schedule.expr import Apply, Axis, Expr, Index, Load, Num
from tvm_neuron.schedule.graph import Block, Graph
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.sim import Machine

RNG = np.random.default_rng(11)
DTYPES = ("int8", "uint8", "int16", "int32")
SHAPE = (3, 40, 6)
WIDE = (-(2**31), -(2**24) - 1, -(2**16), -1, 0, 1, 2**16 - 1, 2**24 + 1, 2**31 - 1)


def whole(dtype: str, shape: tuple[int, ...] = (4, 60)) -> np.ndarray:
    """Random numbers of the whole range; in int32 and int64 those at which float32 and halves of 32 bits end, too."""
    limits = np.iinfo("int32" if dtype == "int64" else dtype)
    found = RNG.integers(limits.min, limits.max, shape, endpoint=True)
    if limits.bits == 32:
        found.flat[: 2 * len(WIDE)] = [*WIDE, *WIDE]
    return found.astype(dtype)


def pair(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Two such arrays: a third is equal, a third differs by one."""
    left, right = whole(dtype), whole(dtype)
    near = RNG.integers(0, 3, left.shape)
    with np.errstate(over="ignore"):
        return left, np.where(near == 0, left, np.where(near == 1, left + left.dtype.type(1), right))


@pytest.mark.parametrize("dtype", [*DTYPES, "bool"])
@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor"])
def test_logic_of_bits(dtype: str, name: str) -> None:
    left, right = RNG.random((2, 4, 60)) < 0.5 if dtype == "bool" else pair(dtype)
    np.testing.assert_array_equal(on_core(getattr(relax.op, name), left, right), getattr(np, name)(left, right))
    np.testing.assert_array_equal(on_core(relax.op.bitwise_not, left), np.bitwise_not(left))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["left_shift", "right_shift"])
def test_shifts(dtype: str, name: str) -> None:
    left = whole(dtype)
    places = RNG.integers(0, np.iinfo(dtype).bits, left.shape).astype(dtype)
    np.testing.assert_array_equal(on_core(getattr(relax.op, name), left, places), getattr(np, name)(left, places))


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("name", ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"])
def test_wide_integers_are_compared(dtype: str, name: str) -> None:
    left, right = pair(dtype)
    if dtype == "int64":
        right = np.clip(right, -(2**31), 2**31 - 1)
    np.testing.assert_array_equal(on_core(getattr(relax.op, name), left, right), getattr(np, name)(left, right))


def test_wide_integers_are_chosen() -> None:
    left, right = pair("int32")
    mask = RNG.random(left.shape) < 0.5
    np.testing.assert_array_equal(on_core(relax.op.where, mask, left, right), np.where(mask, left, right))
    np.testing.assert_array_equal(on_core(relax.op.maximum, left, right), np.maximum(left, right))
    np.testing.assert_array_equal(on_core(relax.op.minimum, left, right), np.minimum(left, right))
    column = whole("int32", (4, 1))
    np.testing.assert_array_equal(on_core(relax.op.where, mask, left, column), np.where(mask, left, column))


@pytest.mark.parametrize("shape", [(), (60,), (4, 1), (4, 60)])
def test_constants_keep_all_their_bits(shape: tuple[int, ...]) -> None:
    array, constant = whole("int32"), RNG.integers(2**24, 2**31, shape, dtype=np.int32) | 1
    for name in ("bitwise_and", "bitwise_xor", "maximum", "less"):
        for swapped in (False, True):
            operands = (constant, array) if swapped else (array, constant)

            def build(x: relax.Var, swapped: bool = swapped, name: str = name) -> relax.Expr:
                known = relax.const(constant)
                return getattr(relax.op, name)(*((known, x) if swapped else (x, known)))

            np.testing.assert_array_equal(on_core(build, array), getattr(np, name)(*operands))


@pytest.mark.parametrize("rows", [1, 3, 40])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("is_even", [False, True])
def test_constants_that_are_only_copied_keep_them_too(rows: int, axis: int, is_even: bool) -> None:
    shape = (rows, 7) if axis == 0 else (7, rows)
    constant, data = (RNG.integers(-(2**31) + 9, 2**31 - 9, part) for part in (shape, (2, 7) if axis == 0 else (7, 2)))
    if is_even:
        constant[...] = -(2**30) - 1
    nodes = [helper.make_node("Concat", ["c", "x"], ["y"], "join", axis=axis)]
    model = make_model(nodes, {"x": data.shape}, ["y"], {"c": constant}, dtype=TensorProto.INT64)
    mod, params = relay.frontend.from_onnx(model)
    library = relay.build(mod, target="neuron/inf2", params=params)
    assert not tvm_neuron.report(library).placed("cpu")
    executor = relay.graph_executor.GraphModule(library["default"](tvm_neuron.device()))
    executor.run(x=data)
    np.testing.assert_array_equal(executor.get_output(0).numpy(), np.concatenate([constant, data], axis))


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_a_filling_of_many_bits(dtype: str) -> None:
    data, fill = whole("int8", (4, 60)).astype(dtype), np.array(-(2**30) - 1, dtype)
    node = helper.make_node("Pad", ["x", "widths", "fill"], ["y"], "pad")
    code = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    weights = {"widths": np.int64([1, 0, 2, 3]), "fill": fill}
    mod, params = relay.frontend.from_onnx(make_model([node], {"x": data.shape}, ["y"], weights, dtype=code))
    library = relay.build(mod, target="neuron/inf2", params=params)
    assert not tvm_neuron.report(library).placed("cpu")
    executor = relay.graph_executor.GraphModule(library["default"](tvm_neuron.device()))
    executor.run(x=data)
    np.testing.assert_array_equal(executor.get_output(0).numpy(), np.pad(data, [(1, 2), (0, 3)], constant_values=fill))


@pytest.mark.parametrize("target", ["int8", "uint8", "int16"])
def test_casts_of_wide_integers_keep_the_lowest_bits(target: str) -> None:
    array = whole("int32")
    np.testing.assert_array_equal(on_core(lambda x: relax.op.astype(x, target), array), array.astype(target))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
@pytest.mark.parametrize("name", ["floor_divide", "mod", "floor_mod"])
def test_divisions_of_small_integers(dtype: str, name: str) -> None:
    left, right = whole(dtype), whole(dtype)
    right[right == 0] = 3
    if dtype != "uint8":
        left[left == np.iinfo(dtype).min] = 5  # by -1 it has no result
    numpy = {"floor_divide": np.floor_divide, "mod": np.fmod, "floor_mod": np.mod}[name]
    np.testing.assert_array_equal(on_core(getattr(relax.op, name), left, right), numpy(left, right))


def test_a_constant_of_more_than_32_bits_is_refused() -> None:
    x = relax.Var("x", relax.TensorType((4,), "int64"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        constant = relax.const(np.array([1, 2, 3, 2**40]), "int64")
        builder.emit_func_output(builder.emit(relax.op.bitwise_and(x, constant)))
    (row,) = tvm_neuron.report(relay.build(builder.get(), target="neuron")).placed("cpu")
    assert row.reason == "it takes a constant of more than 32 bits, which no engine has"


@pytest.mark.parametrize("name", ["BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot", "BitShift"])
def test_the_operators_of_onnx(name: str) -> None:
    dtype = "uint8" if name == "BitShift" else "int32"
    operands = {"x": whole(dtype), "y": whole(dtype)}
    if name == "BitShift":
        operands["y"] = RNG.integers(0, 9, operands["y"].shape).astype(dtype)  # eight places leave nothing
    if name == "BitwiseNot":
        del operands["y"]
    node = helper.make_node(name, list(operands), ["out"], **({"direction": "LEFT"} if name == "BitShift" else {}))
    kind = TensorProto.UINT8 if name == "BitShift" else TensorProto.INT32
    model = make_model([node], {key: value.shape for key, value in operands.items()}, ["out"], dtype=kind)
    mod, params = relay.frontend.from_onnx(model)
    library = relay.build(mod, target="neuron", params=params)
    assert not tvm_neuron.report(library).placed("cpu")
    executor = relay.graph_executor.GraphModule(library["default"](tvm.cpu()))
    executor.run(**operands)
    np.testing.assert_array_equal(executor.get_output(0).numpy(), ReferenceEvaluator(model).run(None, operands)[0])


def op(name: str) -> Callable[..., Expr]:
    return lambda *args: Apply(name, args)


FORMS: dict[str, tuple[Callable[[Expr, Expr], Expr], Callable[[np.ndarray, np.ndarray], np.ndarray]]] = {
    "and": (op("bitwise_and"), np.bitwise_and),
    "xor of a sum": (lambda a, b: op("bitwise_xor")(op("bitwise_and")(a, Num(255)), b), lambda a, b: (a & 255) ^ b),
    "a number": (lambda a, b: op("bitwise_or")(Num(2**30 + 1), a), lambda a, b: (2**30 + 1) | a),
    "shifts": (
        lambda a, b: op("arith_shift_right")(op("logical_shift_left")(a, Num(3)), op("bitwise_and")(b, Num(31))),
        lambda a, b: (a << 3) >> (b & 31),
    ),
    "bits in float32": (
        lambda a, b: op("add")(op("bitwise_and")(a, Num(4095)), op("bitwise_and")(b, Num(15))),
        lambda a, b: (a & 4095) + (b & 15),
    ),
}


@pytest.mark.parametrize("mode", ["nest", "step", "strict"])
@pytest.mark.parametrize("chip", ["inf1", "inf2"])
@pytest.mark.parametrize("form", FORMS)
def test_every_mode_of_the_model_agrees(form: str, chip: str, mode: str) -> None:
    expr, numpy = FORMS[form]
    left, right = whole("int32", SHAPE), whole("int32", SHAPE)
    a, b, y = (Tensor(name, SHAPE, "int32", kind) for name, kind in (("a", "input"), ("b", "input"), ("y", "output")))
    axes = tuple(Axis(name, extent) for name, extent in zip("ncw", SHAPE, strict=True))
    index: tuple[Expr, ...] = tuple(map(Index, axes))
    block = Block(Origin("form", "Form"), axes, y, index, expr(Load(a, index), Load(b, index)))
    made = compile_graph(Graph([a, b], [y], [block]), "form", load_device(chip), BuildOptions())
    found = Machine(made.program, made.device, made.weights).run({"a": left, "b": right}, mode)["y"]
    np.testing.assert_array_equal(found, numpy(left, right))
