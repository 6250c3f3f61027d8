"""relay.dataflow_pattern: dominators, patterns that contain themselves, rounds of callbacks, names of parts."""

import numpy as np
import tvm

from tvm_neuron import relay
from tvm_neuron.relay.dataflow_pattern import DFPatternCallback, FunctionPattern, dominates, is_op, rewrite, wildcard

_ELEMWISE = 0


def _diamond() -> relay.dataflow_pattern.DFPattern:
    """A convolution, and a sum of what elementwise operators make of it."""
    path = wildcard().has_attr({"TOpPattern": _ELEMWISE})(wildcard()) | is_op("nn.bias_add")(wildcard(), wildcard())
    return dominates(is_op("nn.conv2d")(wildcard(), wildcard()), path, is_op("add")(wildcard(), wildcard()))


def test_all_ways_of_a_dominator_lead_to_its_parent() -> None:
    x, other, w = relay.var("x"), relay.var("other"), relay.var("w")
    conv, second = relay.nn.conv2d(x, w), relay.nn.conv2d(other, w)
    assert _diamond().match(relay.tanh(conv) + relay.nn.relu(conv))
    assert _diamond().match(relay.tanh(relay.nn.bias_add(conv, relay.var("b"))) + relay.nn.relu(conv))
    assert not _diamond().match(relay.nn.relu(conv) + relay.tanh(second))
    assert not _diamond().match(relay.nn.relu(x) + relay.tanh(conv))
    shifted = relay.nn.relu(conv)
    assert not _diamond().match((shifted + shifted) + relay.tanh(conv))


class _Relu(DFPatternCallback):
    """A relu around each match."""

    def __init__(self, pattern: object, once: bool) -> None:
        super().__init__(rewrite_once=once)
        self.pattern = pattern

    def callback(self, pre: relay.Expr, post: relay.Expr, node_map: object) -> relay.Expr:
        del pre, node_map
        return relay.nn.relu(post)


class _Drop(DFPatternCallback):
    """What is before a negation instead of it."""

    def __init__(self, once: bool) -> None:
        super().__init__(rewrite_once=once)
        self.inner = wildcard()
        self.pattern = is_op("negative")(is_op("negative")(self.inner))

    def callback(self, pre: relay.Expr, post: relay.Expr, node_map: dict[object, list[relay.Expr]]) -> relay.Expr:
        del pre, post
        return node_map[self.inner][0]


def test_a_wildcard_stands_for_any_number_of_casts() -> None:
    x = relay.var("x", shape=(2,))
    inner = wildcard()
    pattern = is_op("cast")(inner)
    inner.redirect_to(pattern | is_op("tanh")(wildcard()))
    deep = relay.tanh(x)
    for dtype in ("float16", "float32", "float16"):
        deep = relay.cast(deep, dtype)
    assert tvm.ir.structural_equal(rewrite(_Relu(pattern, once=True), deep), relay.nn.relu(deep))
    assert not pattern.match(relay.cast(relay.exp(x), "float16"))


def test_callbacks_that_rewrite_once_do_and_others_go_on() -> None:
    x = relay.var("x", shape=(2,))
    deep = x
    for _ in range(6):
        deep = relay.negative(deep)
    deep = relay.tanh(deep)
    found = rewrite([_Relu(is_op("tanh")(wildcard()), once=True), _Drop(once=False)], deep)
    assert tvm.ir.structural_equal(found, relay.nn.relu(relay.tanh(x)))


def test_names_of_parts_have_all_that_matched() -> None:
    x = relay.var("x", shape=(2, 2))
    joined = is_op("concatenate")(relay.dataflow_pattern.is_tuple(None))
    assert _name(joined.partition(relay.concatenate([x, x], axis=0))) == "Tuple_concatenate_"
    vectors = [relay.const(np.ones(2, "float32"))] * 4
    norm = relay.dataflow_pattern.is_tuple_get_item(is_op("nn.batch_norm")(*(wildcard() for _ in range(5))), 0)
    assert _name(norm.partition(relay.nn.batch_norm(x, *vectors)[0])) == "nn.batch_norm_TupleGetItem0_"
    inner = relay.var("inner", shape=(2, 2))
    call = relay.Function([inner], inner + inner)(x)
    function = FunctionPattern(None, wildcard() + wildcard())(None) + wildcard()
    assert _name(function.partition(call + x)) == "add_FunctionCall_add_"


def _name(call: relay.Call) -> str:
    return str(call.op.attrs["PartitionedFromPattern"])


def test_predicates_of_later_patterns_know_types() -> None:
    x = relay.var("x", shape=(2, 2))
    table = [
        ("c.add_relu", is_op("nn.relu")(wildcard() + wildcard())),
        ("c.tanh", is_op("tanh")(wildcard()), lambda call: call.args[0].checked_type.dtype == "float32"),
    ]
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.tanh(relay.nn.relu(x + x))))
    call = relay.transform.MergeComposite(table)(mod)["main"].body
    assert call.op.attrs["Composite"] == "c.tanh"
    assert call.op.params[0].checked_type == relay.TensorType((2, 2))
    assert call.args[0].op.attrs["Composite"] == "c.add_relu"
