"""Bring your own codegen: patterns, annotations, merged regions, functions of their own, and a build of the result."""

from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relax

from tvm_neuron import BuildOptions, build_options, relay
from tvm_neuron import partition_for_neuron as partition_relax
from tvm_neuron.errors import ModelError
from tvm_neuron.relay import transform
from tvm_neuron.relay.dataflow_pattern import (
    DFPatternCallback,
    has_attr,
    has_dtype,
    has_shape,
    is_constant,
    is_op,
    is_tuple,
    is_tuple_get_item,
    is_var,
    match,
    rewrite,
    wildcard,
)  # fmt: skip
from tvm_neuron.relay.op.annotation import compiler_begin, compiler_end
from tvm_neuron.relay.op.contrib.neuron import partition_for_neuron, pattern_table
from tvm_neuron.relay.op.contrib.register import get_pattern_table, register_pattern_table


def run(mod: tvm.IRModule, *inputs: np.ndarray, target: str = "llvm") -> list[np.ndarray]:
    found = relay.create_executor("graph", mod, target=target).evaluate()(*inputs)
    return [each.numpy() for each in found] if isinstance(found, list) else [found.numpy()]


def regions(mod: tvm.IRModule) -> dict[str, list[str]]:
    """The operators of each region by its name."""
    return {
        var.name_hint: [node.op.name for node in order(func.body) if isinstance(node, relay.Call)]
        for var, func in mod.functions_items()
        if "Compiler" in func.attrs
    }


def order(expr: relay.Expr) -> list[Any]:
    nodes: list[Any] = []
    relay.analysis.post_order_visit(expr, nodes.append)
    return nodes


def layer(x: relay.Expr, name: str) -> relay.Expr:
    conv = relay.nn.conv2d(x, relay.var(f"{name}_weight"), channels=4, kernel_size=3, padding=1)
    return relay.nn.relu(relay.nn.bias_add(conv, relay.var(f"{name}_bias")))


def test_the_usual_script_with_neuron_as_the_compiler() -> None:
    x = relay.var("data", shape=(1, 4, 8, 8))
    out = relay.nn.softmax(relay.nn.batch_flatten(layer(layer(x, "a"), "b")))
    mod, params = relay.testing.create_workload(relay.Function(relay.analysis.free_vars(out), out))
    mod["main"] = relay.build_module.bind_params_by_name(mod["main"], params)
    table = get_pattern_table("neuron")
    assert [name for name, *_ in table] == [name for name, *_ in pattern_table()]
    steps = [
        transform.InferType(), transform.MergeComposite(table), transform.AnnotateTarget("neuron"),
        transform.MergeCompilerRegions(), transform.PartitionGraph(),
    ]  # fmt: skip
    with tvm.transform.PassContext(opt_level=3):
        cut = tvm.transform.Sequential(steps)(mod)
    (func,) = [func for var, func in cut.functions_items() if var.name_hint.startswith("tvmgen_default_neuron_main_")]
    assert (func.attrs["Compiler"], int(func.attrs["Primitive"])) == ("neuron", 1)
    composites = [node.op.attrs["Composite"] for node in order(func.body) if isinstance(node, relay.Call)
                  and isinstance(node.op, relay.Function)]  # fmt: skip
    assert composites == ["neuron.conv2d_bias_activation"] * 2
    data = np.random.default_rng(1).standard_normal((1, 4, 8, 8)).astype("float32")
    library = relay.build(cut, target="neuron/inf2", params=params)  # which are bound already, as BYOC scripts have it
    executor = relay.graph_executor.GraphModule(library["default"](tvm.cpu()))
    executor.run(data=data)
    (wanted,) = run(mod, data)
    np.testing.assert_allclose(executor.get_output(0).numpy(), wanted, rtol=2e-2, atol=1e-3)  # products in bfloat16


def test_partition_for_neuron_shows_what_the_core_runs_and_builds_leave_out_the_rest() -> None:
    x = relay.var("x", shape=(2, 64))
    body = relay.exp(relay.sort(relay.nn.dense(x, relay.var("w"), units=32))) * relay.const(2.0)
    mod, params = relay.testing.create_workload(relay.Function([x, *relay.analysis.free_vars(body)[1:]], body))
    cut = partition_for_neuron(mod, params, mod_name="mine")
    assert sorted(regions(cut).values()) == [["exp", "multiply"], ["nn.dense"]]
    assert all(name.startswith("tvmgen_mine_neuron_main_") for name in regions(cut))
    kept = transform.Inline()(cut)["main"]
    assert [type(node.op).__name__ for node in order(kept.body) if isinstance(node, relay.Call)]
    lowered = relay.build(cut, target="neuron/inf2")
    placement = {row["name"]: row["where"] for row in manifest(lowered)["placement"]}
    assert placement["sort_0"] == "cpu"


def manifest(library: relay.ExecutorFactory) -> dict[str, Any]:
    import json

    return json.loads(library.get_executor_config())


def test_a_region_of_few_operators_leaves_the_others_to_the_cpu() -> None:
    @tvm.ir.register_op_attr("tanh", "target.neuron")
    def takes(call: relay.Call) -> bool:
        return len(call.checked_type.shape) == 3

    try:
        x = relay.var("x", shape=(2, 3, 4))
        mod = tvm.IRModule.from_expr(relay.tanh(relay.reshape(relay.tanh(relay.exp(x)), (6, 4))))
        cut = transform.Sequential([transform.AnnotateTarget(["neuron"]), transform.PartitionGraph()])(mod)
        assert sorted(each for ops in regions(cut).values() for each in ops) == ["exp", "reshape", "tanh"]
        rows = manifest(relay.build(cut, target="neuron/inf2"))["placement"]
        assert [row["where"] for row in rows if row["name"] == "tanh_1"] == ["cpu"]
    finally:
        tvm.ir.Op.get("tanh").reset_attr("target.neuron")


def test_regions_are_merged_unless_a_value_would_leave_and_come_back() -> None:
    x = relay.var("x", shape=(4,))
    for names, count in (({"abs", "log", "add"}, 1), ({"abs", "add"}, 2)):
        for name in names:
            tvm.ir.register_op_attr(name, "target.merged", lambda _: True)
        try:
            shared = relay.abs(x)
            mod = tvm.IRModule.from_expr(relay.log(shared) + shared)
            steps = [transform.AnnotateTarget("merged"), transform.MergeCompilerRegions(), transform.PartitionGraph()]
            cut = tvm.transform.Sequential(steps)(mod)
            assert len(regions(cut)) == count
            data = np.float32([-1, 2, -3, 4])
            np.testing.assert_allclose(run(cut, data)[0], np.log(np.abs(data)) + np.abs(data), rtol=1e-6)
        finally:
            for name in names:
                tvm.ir.Op.get(name).reset_attr("target.merged")


def test_regions_with_several_results_constants_and_their_compilers_own_pass() -> None:
    x = relay.var("x", shape=(4,))
    inner = compiler_begin(x, "own-one") * compiler_begin(relay.const(np.float32([2, 3, 4, 5])), "own-one")
    both = relay.Tuple([compiler_end(inner, "own-one"), compiler_end(relay.exp(inner), "own-one")])
    mod = tvm.IRModule.from_expr(relay.Function([x], both))
    cut = transform.PartitionGraph()(mod)
    assert regions(cut) == {"tvmgen_default_own_one_main_0": ["multiply", "exp"]}
    assert len(cut["tvmgen_default_own_one_main_0"].params) == 1
    assert len(transform.PartitionGraph(bind_constants=False)(mod)["tvmgen_default_own_one_main_0"].params) == 2
    data = np.float32([1, 2, 3, 0.5])
    for found, wanted in zip(run(cut, data), [data * [2, 3, 4, 5], np.exp(data * [2, 3, 4, 5])], strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_tables_of_other_compilers() -> None:
    @register_pattern_table("somebodys")
    def table() -> list[tuple[str, Any]]:
        return [("somebodys.sum", wildcard() + wildcard())]

    assert get_pattern_table("somebodys")[0][0] == "somebodys.sum"
    assert get_pattern_table("nobodys") is None
    x = relay.var("x", shape=(4,))
    mod = transform.MergeComposite(get_pattern_table("somebodys"))(tvm.IRModule.from_expr(relay.exp(x) + x))
    assert 'Composite="somebodys.sum"' in str(mod)
    with pytest.raises(TypeError, match=r"MergeComposite: an entry is \(name, pattern\)"):
        transform.MergeComposite([("name", "no pattern")])


def test_patterns() -> None:
    x, w = relay.var("x", shape=(1, 4, 8, 8)), relay.var("w", shape=(4, 4, 1, 1))
    conv = relay.nn.conv2d(x, w, groups=1, strides=(2, 2))
    left, right = relay.split(x, 2, axis=1)
    for pattern, expr, is_match in [
        (is_op("nn.conv2d")(is_var("x"), wildcard()), conv, True),
        (is_op("nn.conv2d")(is_var("y"), wildcard()), conv, False),
        (is_op("nn.conv2d")(None), conv, True),
        (wildcard().has_attr({"strides": [2, 2]}), conv, True),
        (has_attr({"groups": 2}), conv, False),
        (has_shape((1, 4, 4, 4)), conv, True),
        (has_dtype("int8"), conv, False),
        (is_op("add")(is_constant(), wildcard()), x + relay.const(1.0), True),
        (is_op("subtract")(is_constant(), wildcard()), x - relay.const(1.0), False),
        (is_op("nn.conv2d")(None).optional(is_op("nn.relu")), relay.nn.relu(conv), True),
        (is_op("nn.relu")(wildcard()) | is_op("tanh")(wildcard()), relay.tanh(x), True),
        (is_op("concatenate")(is_tuple([wildcard(), wildcard()])), relay.concatenate([x, x], 0), True),
        (is_tuple_get_item(is_op("split")(wildcard()), 1), right, True),
        (is_tuple_get_item(wildcard(), 1), left, False),
    ]:
        assert match(pattern, expr) is is_match
    twice = wildcard()
    assert (twice * twice).match(x * x)
    assert not (twice * twice).match(x * w)


def test_a_diamond_is_dominated_by_where_it_begins() -> None:
    x, w = relay.var("x"), relay.var("w")
    conv = relay.nn.conv2d(x, w)
    diamond = (is_op("nn.relu")(wildcard()) + is_op("nn.leaky_relu")(wildcard())).dominates(
        is_op("nn.conv2d")(wildcard(), wildcard()), is_op("nn.relu")(wildcard()) | is_op("nn.leaky_relu")(wildcard())
    )
    body = wildcard() + wildcard()
    assert body.dominates(is_op("nn.conv2d")(None), is_op("nn.relu")(None) | is_op("nn.leaky_relu")(None)).match(
        relay.nn.relu(conv) + relay.nn.leaky_relu(conv)
    )
    assert not diamond.match(relay.nn.relu(conv) + relay.tanh(x))


def test_callbacks_rewrite_until_nothing_changes() -> None:
    class Softer(DFPatternCallback):
        def __init__(self) -> None:
            super().__init__(require_type=True)
            self.x = wildcard()
            self.pattern = is_op("nn.relu")(self.x)

        def callback(self, pre: Any, post: Any, node_map: Any) -> Any:
            assert pre.checked_type == relay.TensorType((4,))
            return relay.tanh(node_map[self.x][0])

    x = relay.var("x", shape=(4,))
    found = rewrite(Softer(), relay.nn.relu(relay.exp(relay.nn.relu(x))))
    assert [node.op.name for node in order(found) if isinstance(node, relay.Call)] == ["tanh", "exp", "tanh"]
    with pytest.raises(ValueError, match=r"DFPatternCallback has no pattern: set self\.pattern"):
        rewrite(DFPatternCallback(), x)


def test_a_scope_builder_writes_lets_and_choices() -> None:
    builder = relay.ScopeBuilder()
    x, cond = relay.var("x", shape=(3,)), relay.var("c", shape=(), dtype="bool")
    twice = builder.let("twice", x + x)
    with builder.if_scope(cond):
        builder.ret(builder.let("inner", relay.exp(twice)))
    with builder.else_scope():
        builder.ret(twice)
    func = relay.Function([x, cond], builder.get())
    data = np.float32([0.5, -1, 2])
    (found,) = run(tvm.IRModule.from_expr(func), data, np.array(True))
    np.testing.assert_allclose(found, np.exp(2 * data), rtol=1e-6)
    with pytest.raises(ModelError, match="this scope has a value already"):
        builder.ret(x)
    with pytest.raises(ModelError, match="else_scope needs an if_scope before it"), builder.else_scope():
        pass
    with pytest.raises(ModelError, match=r"a scope has no value; give it one by ret"):
        relay.ScopeBuilder().get()


def test_a_module_of_relax_in_parts() -> None:
    builder, rng = relax.BlockBuilder(), np.random.default_rng(5)
    x, weight = relax.Var("x", relax.TensorType((4, 32), "float32")), rng.standard_normal((32, 40)).astype("float32")
    with builder.function("main", [x]):
        with builder.dataflow():
            product = builder.emit(relax.op.matmul(x, relax.const(weight)))
            result = builder.emit_output(relax.op.abs(builder.emit(relax.op.sort(product))))
        builder.emit_func_output(result)
    with build_options(BuildOptions(fp32_cast="none", device="neuron/inf2")):
        parts = partition_relax(builder.get())
    made = {var.name_hint: func.attrs["Codegen"] for var, func in parts.functions_items() if var.name_hint != "main"}
    assert made == {"neuron_0": "neuron", "neuron_1": "neuron"}
    compiled = relax.build(relax.transform.RunCodegen()(parts), "llvm")
    data = rng.standard_normal((4, 32)).astype("float32")
    found = relax.VirtualMachine(compiled, tvm.cpu())["main"](tvm.runtime.tensor(data)).numpy()
    wanted = np.abs(np.sort(data @ weight))
    np.testing.assert_allclose(found, wanted, atol=2**-8 * wanted.max())  # `RunCodegen` has bfloat16 in products
