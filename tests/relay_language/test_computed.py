"""Attributes that are expressions: sizes from other tensors' shapes, and values that only calls tell."""

import numpy as np
import pytest
import tvm
from tvm import te

from tests.relay_language.test_windows import normal, run, var
from tvm_neuron import relay
from tvm_neuron.errors import InputError
from tvm_neuron.relay.testing import run_infer_type

DATA = normal(4, 6)
X = var("x", DATA)
SHAPE = relay.var("s", shape=(2,), dtype="int64")


def test_values_come_from_each_call() -> None:
    func = relay.create_executor("vm", target="llvm").evaluate(relay.Function([X, SHAPE], relay.reshape(X, SHAPE)))
    assert func(DATA, np.array([8, 3])).numpy().shape == (8, 3)
    np.testing.assert_array_equal(func(DATA, np.array([2, -1])).numpy(), DATA.reshape(2, 12))


@pytest.mark.parametrize(
    ("make", "values", "wanted"),
    [
        (lambda a: relay.topk(X, a, ret_type="values"), [2], -np.sort(-DATA)[:, :2]),
        (lambda a: relay.tile(X, (a, relay.const(2))), [3], np.tile(DATA, (3, 2))),
        (lambda a: X + relay.arange(a), [6.0], DATA + np.arange(6)),
        (lambda a: relay.trilu(X, a), [1], np.triu(DATA, 1)),
        (lambda a: relay.strided_slice(X, (relay.const(0), a), (4, 6)), [4], DATA[:, 4:]),
        (lambda a: relay.full(a, relay.shape_of(X)), [2.5], np.full((4, 6), 2.5)),
        (lambda a: relay.one_hot(relay.const([1, 0]), relay.const(1.0), relay.const(0.0), a, -1, "float32"), [3],
         np.eye(3)[[1, 0]]),
        (lambda a: relay.nn.pad(X, ((1, -1), (-2, 0)), a), [1.5],
         np.pad(DATA[:-1, 2:], ((1, 0), (0, 0)), constant_values=1.5)),
    ],
)  # fmt: skip
def test_operators_take_them(make: object, values: list[float], wanted: np.ndarray) -> None:
    number = relay.var("a", "float32" if isinstance(values[0], float) else "int32")
    expr = make(number)
    inputs = {"x": DATA, "a": np.array(values[0], number.type_annotation.dtype)}
    found = run(expr, *(inputs[v.name_hint] for v in relay.analysis.free_vars(expr)))
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_sizes_come_from_shapes() -> None:
    other = relay.var("y", shape=(relay.Any(), 6))
    rows = relay.take(relay.shape_of(other), relay.const([0]))
    expr = relay.reshape(X, relay.concatenate([rows * relay.const(2), relay.const([-1])], 0))
    np.testing.assert_array_equal(run(expr, DATA, normal(3, 6)), DATA.reshape(6, 4))


def test_params_of_a_build_tell_them() -> None:
    mod = tvm.IRModule.from_expr(relay.reshape(X, SHAPE))
    library = relay.build(mod, target="llvm", params={"s": np.array([3, 8])})
    module = relay.graph_executor.GraphModule(library["default"](tvm.cpu()))
    module.run(x=DATA)
    np.testing.assert_array_equal(module.get_output(0).numpy(), DATA.reshape(3, 8))


@pytest.mark.parametrize(
    ("expr", "ty"),
    [
        (relay.reshape(X, SHAPE), "Tensor[(?, ?), float32]"),
        (relay.topk(X, relay.var("k", "int32"), ret_type="indices", dtype="int64"), "Tensor[(?, ?), int64]"),
        (relay.arange(relay.var("n", "int32"), dtype="int32"), "Tensor[(?,), int32]"),
        (relay.nn.pad(X, ((1, 1), (2, -1)), relay.var("v", "float32")), "Tensor[(6, 7), float32]"),
    ],
)
def test_types_are_open_where_the_values_are(expr: relay.Expr, ty: str) -> None:
    assert str(run_infer_type(expr).checked_type) == ty


def test_types_of_open_sizes() -> None:
    n, w = te.size_var("n"), te.size_var("w")
    x = relay.var("x", relay.TensorType((n, 2, w)))
    assert run_infer_type(relay.nn.lrn(x, 3)).checked_type == x.type_annotation
    assert run_infer_type(relay.slice_like(x, relay.var("y", shape=(1, 2, 3)))).checked_type.shape == [1, 2, 3]
    padded = run_infer_type(relay.nn.pad(x, ((-1, -1), (1, -3), (4, 4))))
    assert padded.checked_type == relay.TensorType((n - 2, 0, w + 8))
    halves = run_infer_type(relay.split(x, 2, axis=2).astuple())
    assert halves.checked_type == relay.TupleType([relay.TensorType((n, 2, w // 2))] * 2)
    parts = run_infer_type(relay.split(x, (2, 5), axis=2).astuple())
    assert parts.checked_type.fields[2] == relay.TensorType((n, 2, w - 5))
    product = run_infer_type(relay.nn.dense(X, relay.var("w", shape=(5, 6))))
    assert [str(ty) for ty in product.type_args] == ["Tensor[(4, 6), float32]", "Tensor[(5, 6), float32]"]


def test_inputs_of_open_models_are_checked_and_may_share_a_name() -> None:
    rows = [relay.var("x", shape=(relay.Any(), 2)) for _ in range(3)]
    func = relay.create_executor("vm", target="llvm").evaluate(relay.Function(rows, relay.concatenate(rows, 0)))
    data = [normal(count, 2) for count in (1, 3, 2)]
    np.testing.assert_array_equal(func(*data).numpy(), np.concatenate(data))
    for wrong in (normal(2, 3), normal(2)):
        with pytest.raises(InputError, match=r"input 'x_1' has the shape \(2,.*\); the function takes"):
            func(data[0], wrong, data[2])


def test_a_transpose_gives_more_than_its_stride() -> None:
    data, weight = normal(1, 2, 3, 4), normal(2, 3, 2, 2)
    expr = relay.nn.conv2d_transpose(var("x", data), var("w", weight), (2, 1), (1, 0), output_padding=(2, 1))
    whole = np.zeros((1, 3, 2 * 2 + 2, 3 + 2))
    for row in range(3):
        for column in range(4):
            part = np.einsum("nc,cohw->nohw", data[:, :, row, column].astype("float64"), weight)
            whole[:, :, 2 * row : 2 * row + 2, column : column + 2] += part
    wanted = np.pad(whole, [(0, 0), (0, 0), (0, 1), (0, 1)])[:, :, 1:]  # 1 of the 2 rows more is what was cut off
    np.testing.assert_allclose(run(expr, data, weight), wanted, rtol=1e-5, atol=1e-5)
