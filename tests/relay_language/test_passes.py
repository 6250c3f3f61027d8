"""relay.transform: each pass changes what it says, and never what is computed; instruments see passes by name."""

from collections.abc import Callable

import numpy as np
import pytest
import tvm

from tvm_neuron import relay
from tvm_neuron.errors import OptionError
from tvm_neuron.relay import transform
from tvm_neuron.relay.analysis import list_op_freqs

Make = Callable[[], relay.Function]


def network() -> relay.Function:
    """A convolution with its batch normalisation twice, a residual sum, a pool and a dense layer."""
    rng = np.random.default_rng(3)
    x = relay.var("x", shape=(1, 4, 8, 8))
    y = x
    for _ in range(2):
        weight = relay.const(rng.standard_normal((4, 4, 3, 3)).astype("float32"))
        vectors = [relay.const(rng.uniform(0.5, 2, 4).astype("float32")) for _ in range(4)]
        y = relay.nn.conv2d(y, weight, padding=1, channels=4, kernel_size=3)
        y = relay.nn.relu(relay.nn.batch_norm(relay.nn.dropout(y), *vectors)[0])
    pooled = relay.nn.max_pool2d(relay.nn.bias_add(y + x, relay.const(np.float32([1, 2, 3, 4]))), 2, 2)
    flat = relay.nn.batch_flatten(relay.concatenate([pooled, pooled * relay.const(2.0)], axis=1))
    dense = relay.nn.dense(flat, relay.const(rng.standard_normal((5, 128)).astype("float32")))
    return relay.Function([x], relay.Tuple([dense + dense, relay.sigmoid(dense + dense)]))


def results(mod: tvm.IRModule) -> list[np.ndarray]:
    data = np.random.default_rng(0).standard_normal((1, 4, 8, 8)).astype("float32")
    found = relay.create_executor("vm", mod, target="llvm").evaluate()(data)
    return [each.numpy() for each in found]


def counts(mod: tvm.IRModule) -> dict[str, int]:
    return list_op_freqs(mod)


@pytest.fixture(scope="module")
def wanted() -> list[np.ndarray]:
    return results(tvm.IRModule.from_expr(network()))


@pytest.mark.parametrize(
    ("make", "changes"),
    [
        (transform.SimplifyInference, {"nn.batch_norm": 0, "nn.dropout": 0, "sqrt": 2}),
        (transform.FoldConstant, {"nn.conv2d": 2}),
        (lambda: transform.Sequential([transform.SimplifyInference(), transform.FoldConstant()]), {"sqrt": 0}),
        (transform.EliminateCommonSubexpr, {"add": 2}),
        (transform.ToANormalForm, {"add": 3}),
        (lambda: transform.Sequential([transform.ToANormalForm(), transform.ToGraphNormalForm()]), {"add": 3}),
        (lambda: transform.FuseOps(fuse_opt_level=2), {}),
        (lambda: transform.Sequential([transform.FuseOps(2), transform.DefuseOps()]), {"add": 3}),
        (transform.CanonicalizeOps, {"nn.bias_add": 0, "add": 4}),
        (transform.SimplifyExpr, {"nn.dense": 1}),
        (lambda: transform.ConvertLayout({"nn.conv2d": ["NHWC", "default"]}), {"layout_transform": 6}),
        (transform.AlterOpLayout, {"nn.conv2d": 2}),
        (transform.PartitionGraph, {}),
    ],
)
def test_passes_keep_what_is_computed(
    make: Callable[[], tvm.transform.Pass], changes: dict[str, int], wanted: list[np.ndarray]
) -> None:
    with tvm.transform.PassContext(opt_level=3):
        mod = make()(tvm.IRModule.from_expr(network()))
    assert {name: counts(mod).get(name, 0) for name in changes} == changes
    for found, known in zip(results(mod), wanted, strict=True):
        np.testing.assert_allclose(found, known, rtol=2e-5, atol=2e-5)
    assert mod["main"].body.checked_type == relay.TupleType([relay.TensorType((1, 5))] * 2)


@pytest.mark.slow
def test_scales_go_into_weights(wanted: list[np.ndarray]) -> None:
    fold = transform.FoldConstant()
    steps = [transform.SimplifyInference(), fold, transform.FoldScaleAxis(), fold]
    with tvm.transform.PassContext(opt_level=3):
        mod = transform.Sequential(steps)(tvm.IRModule.from_expr(network()))
    assert counts(mod)["multiply"] == 1  # the one of the concatenation
    for found, known in zip(results(mod), wanted, strict=True):
        np.testing.assert_allclose(found, known, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_mixed_precision(wanted: list[np.ndarray]) -> None:
    mod = transform.ToMixedPrecision("float16")(tvm.IRModule.from_expr(network()))
    assert counts(mod)["cast"] > 2
    assert "float16" in str(mod)
    for found, known in zip(results(mod), wanted, strict=True):
        np.testing.assert_allclose(found, known, rtol=2e-2, atol=2e-2 * abs(known).max())  # 11 bits, a few roundings
    with pytest.raises(OptionError, match="ToMixedPrecision: 'int8' is none of float16, bfloat16"):
        transform.ToMixedPrecision("int8")


def test_layouts_between_convolutions_are_not_changed_back_and_forth() -> None:
    x = relay.var("x", shape=(1, 4, 8, 8))
    weight = relay.const(np.ones((4, 4, 3, 3), "float32"))
    y = x
    for _ in range(3):
        y = relay.nn.relu(relay.nn.conv2d(y, weight, padding=1, channels=4, kernel_size=3))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.nn.max_pool2d(y)))
    with tvm.transform.PassContext(opt_level=3):
        mod = transform.ConvertLayout({"nn.conv2d": ["NHWC", "OHWI"]})(mod)
    assert counts(mod)["layout_transform"] == 2 + 3  # in, out, and the weights
    assert 'layout="NHWC"' in str(mod)
    with pytest.raises(OptionError, match=r"ConvertLayout: 'nn\.relu' is no operator of Relay with a layout"):
        transform.ConvertLayout({"nn.relu": ["NHWC"]})


def test_dead_code_and_unused_functions_go() -> None:
    x, used, unused = relay.var("x", shape=(2,)), relay.var("used"), relay.var("unused")
    body = relay.Let(unused, relay.exp(x), relay.Let(used, relay.log(x), used + used))
    mod = tvm.IRModule.from_expr(relay.Function([x], body))
    mod["other"] = relay.Function([x], x)
    mod = transform.Sequential([transform.DeadCodeElimination(), transform.RemoveUnusedFunctions()], opt_level=1)(mod)
    assert counts(mod) == {"log": 1, "add": 1}
    assert [var.name_hint for var in mod.get_global_vars()] == ["main"]


def test_functions_are_inlined() -> None:
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    name = relay.GlobalVar("twice")
    mod = tvm.IRModule({name: relay.Function([y], y + y).with_attr("Inline", 1)})
    mod["main"] = relay.Function([x], name(relay.exp(x)))
    mod = transform.Inline()(mod)
    assert counts(mod) == {"exp": 1, "add": 1}
    assert [var.name_hint for var in mod.get_global_vars()] == ["main"]


def test_passes_of_a_users_own() -> None:
    @transform.function_pass(opt_level=1)
    class Scaled:
        def __init__(self, factor: float) -> None:
            self.factor = factor

        def transform_function(self, func: relay.Function, mod: tvm.IRModule, ctx: object) -> relay.Function:
            del mod, ctx
            factor = self.factor

            class Multiplied(relay.ExprMutator):
                def visit_constant(self, const: relay.Constant) -> relay.Expr:
                    return const * relay.const(factor)

            return Multiplied().visit(func)

    made = Scaled(3.0)
    assert (made.info.name, made.info.opt_level, made.factor) == ("Scaled", 1, 3.0)
    x = relay.var("x", shape=(2,))
    mod = made(tvm.IRModule.from_expr(x + relay.const(2.0)))
    found = relay.create_executor("vm", mod, target="llvm").evaluate()(np.float32([1, 2]))
    np.testing.assert_array_equal(found.numpy(), [7, 8])
    with pytest.raises(ValueError, match="function_pass needs opt_level"):
        transform.function_pass(lambda func, mod, ctx: func)
    with pytest.raises(TypeError, match="takes a function or a class, not int"):
        transform.function_pass(3, opt_level=1)


def test_instruments_see_passes_by_name_and_contexts_choose() -> None:
    seen: list[str] = []

    @tvm.instrument.pass_instrument
    class Names:
        def run_before_pass(self, mod: tvm.IRModule, info: object) -> None:
            assert isinstance(mod["main"], relay.Function)
            seen.append(str(info.name))

    steps = [transform.SimplifyInference(), transform.FoldConstant(), transform.EliminateCommonSubexpr()]
    with tvm.transform.PassContext(opt_level=3, disabled_pass=["EliminateCommonSubexpr"], instruments=[Names()]):
        transform.Sequential(steps)(tvm.IRModule.from_expr(network()))
    assert seen == ["sequential", "SimplifyInference", "FoldConstant"]
