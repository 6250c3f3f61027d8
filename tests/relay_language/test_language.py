"""Relay's expressions: built, typed, printed, walked, changed, and what is refused."""

import numpy as np
import pytest
import tvm
from tvm import te

from tvm_neuron import relay
from tvm_neuron.errors import ModelError, OptionError
from tvm_neuron.relay.testing import run_infer_type


def evaluate(expr: relay.Expr, *values: np.ndarray) -> list[np.ndarray] | np.ndarray:
    found = relay.create_executor("graph", target="neuron/inf2").evaluate(expr)
    found = found(*values) if callable(found) else found
    return [each.numpy() for each in found] if isinstance(found, list) else found.numpy()


def test_a_function_prints_as_in_relay() -> None:
    x, b = relay.var("x", shape=(4, 6, 3)), relay.var("b")
    left, right = relay.split(relay.nn.bias_add(relay.nn.relu(x), b), 2, axis=0)
    func = relay.Function([x, b], relay.concatenate([left, right + relay.const(2.0)], axis=1))
    assert (
        func.astext()
        == """\
#[version = "0.0.5"]
fn (%x: Tensor[(4, 6, 3), float32], %b) {
  %0 = nn.relu(%x);
  %1 = nn.bias_add(%0, %b);
  %2 = split(%1, indices_or_sections=2);
  %3 = add(%2.1, 2.0f);
  %4 = (%2.0, %3);
  concatenate(%4, axis=1)
}"""
    )
    assert str(tvm.IRModule.from_expr(func)).splitlines()[1] == "def @main(%x: Tensor[(4, 6, 3), float32], %b) {"
    assert str(relay.nn.softmax(x, axis=1)).splitlines()[1:] == [
        "free_var %x: Tensor[(4, 6, 3), float32];", "nn.softmax(%x, axis=1)"
    ]  # fmt: skip


def test_types_are_found_also_of_symbolic_dimensions() -> None:
    n, t = te.var("n"), te.var("t")
    x = relay.var("x", shape=(n, t, 100))
    found = run_infer_type(relay.concatenate((x, relay.exp(x)), axis=1))
    assert found.checked_type == relay.TensorType((n, t + t, 100))
    assert found.checked_type != relay.TensorType((n, t, 100))
    assert run_infer_type(relay.expand_dims(x, axis=2)).checked_type == relay.TensorType((n, t, 1, 100))
    with pytest.raises(ValueError, match=r"run relay\.transform\.InferType first"):
        _ = relay.exp(x).checked_type


def in_pairs(x: relay.Expr) -> relay.Expr:
    return relay.layout_transform(x, "NCHW", "NCHW2c")


@pytest.mark.parametrize(
    ("make", "wanted"),
    [
        (lambda x, w: relay.nn.conv2d(x, w, channels=8, kernel_size=(3, 5)), (8, 4, 3, 5)),
        (lambda x, w: relay.nn.conv2d(x, w, channels=8, kernel_size=3, groups=2), (8, 2, 3, 3)),
        (lambda x, w: relay.nn.conv2d(in_pairs(x), w, 1, 0, 1, 1, 8, 3, "NCHW2c", "OIHW2i4o"), (2, 2, 3, 3, 2, 4)),
        (lambda x, w: relay.nn.conv2d_transpose(x, w, channels=8, kernel_size=(3, 5)), (4, 8, 3, 5)),
        (lambda x, w: relay.nn.dense(relay.nn.batch_flatten(x), w, units=7), (7, 4 * 9 * 9)),
        (lambda x, w: relay.nn.batch_norm(x, w, w, w, w)[0], (4,)),
        (lambda x, w: relay.nn.bias_add(x, w, axis=-1), (9,)),
    ],
)
def test_a_variable_gets_its_type_from_what_uses_it(make: object, wanted: tuple[int, ...]) -> None:
    x, w = relay.var("x", shape=(2, 4, 9, 9)), relay.var("w")
    func = run_infer_type(relay.Function([x, w], make(x, w)))
    assert func.params[1].checked_type == relay.TensorType(wanted)


def test_control_flow_and_functions() -> None:
    x, cond = relay.var("x", shape=(3, 4)), relay.var("c", shape=(), dtype="bool")
    y = relay.var("y", shape=(3, 4))
    twice = relay.Function([y], y + y)
    inner = relay.var("inner")
    body = relay.Let(inner, relay.Call(twice, [x]), relay.If(cond, inner * relay.const(3.0), relay.exp(inner)))
    func = relay.Function([x, cond], relay.Tuple([body, x]))
    data = np.random.default_rng(0).standard_normal((3, 4)).astype("float32")
    for taken in (True, False):
        found = evaluate(func, data, np.array(taken))
        np.testing.assert_allclose(found[0], data * 6 if taken else np.exp(data * 2), rtol=2e-2)
        np.testing.assert_array_equal(found[1], data)


def test_functions_of_a_module_are_called_by_name() -> None:
    y, x = relay.var("y", shape=(3,)), relay.var("x", shape=(3,))
    mod = tvm.IRModule({"double": relay.Function([y], y + y)})
    mod["main"] = relay.Function([x], relay.Call(mod.get_global_var("double"), [x]))
    found = relay.create_executor(mod=mod).evaluate()(np.float32([1, 2, 4]))
    np.testing.assert_array_equal(found.numpy(), [2, 4, 8])
    mod["double"] = relay.Function([y], relay.Call(mod.get_global_var("double"), [y]))
    with pytest.raises(ModelError, match="@double calls itself"):
        relay.build(mod, target="neuron")


def test_a_mutator_rewrites_and_keeps_what_it_leaves() -> None:
    class ReluToTanh(relay.ExprMutator):
        def visit_call(self, call: relay.Call) -> relay.Expr:
            if call.op.name == "nn.relu":
                return relay.tanh(self.visit(call.args[0]))
            return super().visit_call(call)

    x = relay.var("x", shape=(3,))
    deep = relay.exp(x)
    kept = deep
    for _ in range(2000):  # deeper than Python's stack
        deep = relay.negative(deep)
    func = relay.Function([x], relay.nn.relu(deep) + kept)
    changed = ReluToTanh().visit(func)
    assert "tanh" in changed.astext()
    assert "nn.relu" not in changed.astext()
    assert changed.body.args[1].same_as(kept)
    assert relay.ExprMutator().visit(func).same_as(func)
    assert relay.analysis.free_vars(func.body) == [x]
    assert relay.analysis.free_vars(func) == []


def test_bind_replaces_parameters() -> None:
    x, y = relay.var("x", shape=(3,)), relay.var("y", shape=(3,))
    func = relay.bind(relay.Function([x, y], x - y), {y: relay.const(np.float32([1, 2, 3]))})
    assert [param.name_hint for param in func.params] == ["x"]
    np.testing.assert_array_equal(evaluate(func, np.float32([4, 4, 4])), [3, 2, 1])


def test_structurally_equal_functions_are_equal_to_tvm() -> None:
    def make(attr: int) -> relay.Function:
        x = relay.var("x", shape=(3, 4))
        return relay.Function([x], relay.nn.softmax(x, axis=attr))

    tvm.ir.assert_structural_equal(make(1), make(1))
    with pytest.raises(ValueError, match="StructuralEqual check failed"):
        tvm.ir.assert_structural_equal(make(1), make(0))


X = relay.var("x", shape=(3, 4))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: run_infer_type(relay.reshape(X, (5, -1))), r"12 elements of the shape \[3, 4\] can't be laid out as"),
        (lambda: run_infer_type(relay.reshape(X, (0, 0, 0))), r"newshape \(0, 0, 0\) does not fit the shape"),
        (lambda: run_infer_type(relay.sum(X, axis=2)), "sum_0 .sum.: axis 2 of a tensor of 2 dimensions"),
        (lambda: run_infer_type(relay.split(X, 3, axis=1).astuple()), "4 elements along axis 1 can't be split into 3"),
        (
            lambda: run_infer_type(relay.nn.dense(X, relay.var("w"))),
            "the weight has no type, and units does not say it",
        ),
        (lambda: run_infer_type(relay.left_shift(X, X)), "left_shift.: its operands are float32; it takes integers"),
        (lambda: run_infer_type(relay.exp(relay.var("w"))), "'w' has no type, and nothing that uses it gives it one"),
        (lambda: run_infer_type(relay.layout_transform(X, "NC", "NH")), "can't go from layout NC to NH"),
        (lambda: run_infer_type(relay.layout_transform(X, "NC", "NC3c")), "can't be cut into the blocks of 3 of NC3c"),
        (
            lambda: relay.build(tvm.IRModule.from_expr(relay.reshape(X, relay.var("s", shape=(2,))))),
            r"reshape_0 \(reshape\): it needs the value of 'newshape' when it is compiled, which comes from s: give",
        ),
        (
            lambda: run_infer_type(relay.Call(relay.ir.expr.Op("nn.no"), [X])),
            "the operator 'nn.no' of Relay is not here",
        ),
        (
            lambda: relay.build(tvm.IRModule({"f": relay.Function([], X), "g": relay.Function([], X)})),
            "no function 'main'",
        ),
        (
            lambda: run_infer_type(relay.If(relay.const(True), X, relay.sum(X))),
            r"the branches of an If give Tensor\[\(3, 4\), float32\] and float32",
        ),
    ],
)
def test_what_is_refused(make: object, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        make()


def test_wrong_values_are_told_at_once() -> None:
    with pytest.raises(TypeError, match=r"a dimension is a whole number or an expression of TVM, not 2\.5"):
        relay.TensorType((2.5,))
    with pytest.raises(TypeError, match="an expression of Relay is wanted, got str"):
        relay.exp("x")
    with pytest.raises(ValueError, match="give type_annotation or shape, not both"):
        relay.var("x", relay.TensorType((1,)), shape=(1,))
    with pytest.raises(TypeError, match=r"relay\.const takes numbers"):
        relay.const("x")
    with pytest.raises(IndexError, match="there are 2 results, none has number 2"):
        _ = relay.split(X, 2)[2]
    with pytest.raises(OptionError, match="kind is 'jit'; there are graph, vm, debug, aot"):
        relay.create_executor("jit")
