"""Whole numbers whose span follows from what they are made of are computed on the core, beside onnxruntime."""

import numpy as np
import onnx
import pytest
import tvm
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from tvm import relax

import tvm_neuron
from tests.codegen.on_core import PRECISIONS, on_core
from tests.onnx_models import Arrays, make_model, reference
from tests.stages.networks import compile_model
from tvm_neuron import relay
from tvm_neuron.build import BuildOptions
from tvm_neuron.codegen import byoc
from tvm_neuron.codegen.integers import result_span
from tvm_neuron.frontend import from_onnx, normalize
from tvm_neuron.partition.lift import lift_constants
from tvm_neuron.partition.plan import make_plan
from tvm_neuron.program import Origin
from tvm_neuron.schedule.expr import Axis, Index, Load
from tvm_neuron.schedule.graph import Block
from tvm_neuron.schedule.tensor import Tensor

node = helper.make_node
INT64, INT32 = TensorProto.INT64, TensorProto.INT32


def places(length: int, pad: int, dtype: int = INT64) -> onnx.ModelProto:
    """Rows of a table by positions that are counted where there is no padding, as RoBERTa has them."""
    whole = helper.tensor_dtype_to_np_dtype(dtype)
    table = np.random.default_rng(length).standard_normal((length + pad + 1, 16)).astype(np.float32)
    constants: Arrays = {"pad": np.int64(pad), "offset": np.array(pad, whole), "axis": np.int64(1), "table": table}
    nodes = [
        node("Equal", ["ids", "pad"], ["is_pad"]),
        node("Not", ["is_pad"], ["is_word"]),
        node("Cast", ["is_word"], ["mask"], to=dtype),
        node("CumSum", ["mask", "axis"], ["sums"]),
        node("Mul", ["sums", "mask"], ["counted"], name="counted"),
        node("Add", ["counted", "offset"], ["places"]),
        node("Gather", ["table", "places"], ["rows"]),
    ]
    return make_model(nodes, {"ids": (2, length)}, ["places", "rows"], constants, dtypes={"ids": INT64})


@settings(max_examples=6)
@given(
    length=st.sampled_from([1, 7, 64, 400]),
    pad=st.integers(0, 3),
    dtype=st.sampled_from([INT64, INT32]),
    precision=st.sampled_from(PRECISIONS[2:]),
    seed=st.integers(0, 99),
)
def test_places_among_padding(length: int, pad: int, dtype: int, precision: tuple[str, str], seed: int) -> None:
    model = places(length, pad, dtype)
    inputs = {"ids": np.random.default_rng(seed).integers(0, 5, (2, length))}
    for actual, wanted in zip(on_core(model, inputs, *precision), reference(model, inputs), strict=True):
        np.testing.assert_array_equal(actual, wanted)


def test_places_among_padding_are_one_program() -> None:
    compile_model(places(64, 1), "neuron/inf2")


@pytest.mark.parametrize(("factor", "where"), [(2**18, "neuroncore"), (2**18 + 1, "cpu")])
def test_products_that_float32_may_not_hold_are_the_cpus(factor: int, where: str) -> None:
    nodes = [
        node("Greater", ["x", "zero"], ["is_more"]),
        node("Cast", ["is_more"], ["mask"], to=INT64),
        node("CumSum", ["mask", "axis"], ["sums"]),
        node("Mul", ["sums", "factor"], ["y"], name="product"),
    ]
    constants: Arrays = {"zero": np.float32(0), "axis": np.int64(1), "factor": np.int64(factor)}
    check(make_model(nodes, {"x": (3, 64)}, ["y"], constants), {"x": np.ones((3, 64), np.float32)}, product=where)


def test_nothing_is_known_of_inputs() -> None:
    model = make_model([node("Mul", ["x", "x"], ["y"], name="product")], {"x": (4,)}, ["y"], dtype=INT64)
    check(model, {"x": np.int64([3, -5, 0, 40_000])}, product="cpu")


def test_what_is_clipped_is_known() -> None:
    nodes = [node("Clip", ["x", "low", "high"], ["c"]), node("Mul", ["c", "c"], ["y"], name="product")]
    constants: Arrays = {"low": np.int64(-4096), "high": np.int64(4096)}
    model = make_model(nodes, {"x": (5,)}, ["y"], constants, dtype=INT64)
    check(model, {"x": np.int64([3, -5, 2**31 - 1, -(2**31), 4095])}, product="neuroncore")


def test_subgraphs_know_what_others_pass_on() -> None:
    nodes = [
        node("Equal", ["ids", "seven"], ["is_seven"]),
        node("Cast", ["is_seven"], ["mask"], to=INT64),
        node("Mul", ["mask", "seven"], ["sevens"]),
        node("Split", ["sevens"], ["first", "second"], axis=0, num_outputs=2),
        node("Cast", ["first"], ["floats"], to=TensorProto.FLOAT),
        node("Erf", ["floats"], ["apart"], name="apart"),
        node("Greater", ["apart", "zero"], ["is_more"]),
        node("Cast", ["is_more"], ["more"], to=INT64),
        node("Mul", ["more", "second"], ["y"], name="product"),
    ]
    constants: Arrays = {"seven": np.int64(7), "zero": np.float32(0)}
    model = make_model(nodes, {"ids": (4, 64)}, ["y", "first"], constants, dtypes={"ids": INT64})
    ids = np.random.default_rng(2).integers(6, 8, (4, 64))
    check(model, {"ids": ids}, BuildOptions(on_cpu=("apart",), optlevel=1), apart="cpu", product="neuroncore")


@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 1), (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMax", "ReduceMin"])
def test_reductions(op: str, axes: tuple[int, ...]) -> None:
    nodes = [
        node("Clip", ["x", "low", "high"], ["c"]),
        node("Mul", ["c", "three"], ["m"]),
        node(op, ["m", "axes"], ["y"], name="reduced", keepdims=0),
    ]
    constants: Arrays = {"low": np.int32(-99), "high": np.int32(101), "three": np.int32(3), "axes": np.int64(axes)}
    model = make_model(nodes, {"x": (5, 40, 130)}, ["y"], constants, dtype=INT32)
    x = np.random.default_rng(len(axes)).integers(-120, 125, (5, 40, 130), np.int32)
    check(model, {"x": x}, reduced="neuroncore")


def check(model: onnx.ModelProto, inputs: Arrays, options: BuildOptions | None = None, **wheres: str) -> None:
    """Results are as onnxruntime has them, and operators run where `wheres` says."""
    mod, params = relay.frontend.from_onnx(model)
    library = relay.build(mod, target="neuron/inf2", params=params, options=options)
    found = {row.name: row.where for row in tvm_neuron.report(library).placement}
    assert {name: found[name] for name in wheres} == wheres
    executor = relay.graph_executor.GraphModule(library["default"](tvm.cpu()))
    executor.run(**inputs)
    for number, wanted in enumerate(reference(model, inputs)):
        np.testing.assert_array_equal(executor.get_output(number).numpy(), wanted)


@pytest.mark.parametrize(
    ("combine", "start", "dtype", "wanted"),
    [("", 0.0, "float32", (-3, 7)), ("max", -np.inf, "float32", (-3, 7)), ("max", 9.0, "float32", (-3, 9)),
     ("add", 1.0, "int32", (-29, 71)), ("add", 0.5, "float32", None), ("add", 0.0, "bfloat16", None),
     ("add", 0.0, "int8", (-30, 70)), ("multiply", 1.0, "float32", None), ("min", np.inf, "uint8", (0, 7))],
)  # fmt: skip
def test_what_reductions_start_from_counts(
    combine: str, start: float, dtype: str, wanted: tuple[float, float] | None
) -> None:
    axis = Axis("k", 10, is_reduction=True)
    read = Load(Tensor("x", (10,), "int32", span=(-3.0, 7.0)), (Index(axis),))
    block = Block(Origin("", ""), (axis,), Tensor("y", (), dtype), (), read, combine, start)
    assert result_span([block]) == wanted
    again = Block(Origin("", ""), (axis,), block.output, (), Load(block.output, ()))
    assert result_span([block, again]) is None


CONSTANTS: Arrays = {
    "one": np.int64(1), "axis": np.int64(1), "axes": np.int64([1]), "low": np.int64(-20), "high": np.int64(5),
    "threshold": np.float32(0.2), "table": np.int64([4, -9, 30, 2]),
}  # fmt: skip
STEPS = {
    "Add": "{x} {y}", "Sub": "{x} {y}", "Mul": "{x} {y}", "Max": "{x} {y}", "Min": "{x} {y}", "Where": "{b} {x} {y}",
    "Neg": "{x}", "Abs": "{x}", "Clip": "{x} low high", "CumSum": "{x} axis", "ReduceSum": "{x} axes", "Sign": "{x}",
    "ReduceMax": "{x} axes", "Transpose": "{x}", "Cast": "{b}", "Mod": "{x} high", "Div": "{x} high",
    "Gather": "table b",
}  # fmt: skip


@st.composite
def whole_numbers(draw: st.DrawFn) -> onnx.ModelProto:
    """Values of six by six or what spreads to that, each an output; some are read as smaller integers or as floats."""
    nodes = [node("Greater", ["x", "threshold"], ["b0"]), node("Cast", ["b0"], ["v0"], to=INT64)]
    nodes.append(node("Clip", ["ids", "low", "high"], ["v1"]))
    nodes.append(node("Cast", ["b0"], ["b"], to=INT64))
    for number in range(2, draw(st.integers(3, 8))):
        earlier = st.integers(0, number - 1).map("v{}".format)
        op = draw(st.sampled_from(sorted(STEPS)))
        operands = STEPS[op].format(x=draw(earlier), y=draw(st.one_of(earlier, st.just("one"))), b="b0").split()
        attrs = {"Cast": {"to": INT64}, "ReduceSum": {"keepdims": 1}, "Transpose": {"perm": [1, 0]}}.get(op, {})
        dtype = draw(st.sampled_from(["INT64", "INT64", "INT8", "UINT8", "INT32", "FLOAT"]))
        nodes.append(node(op, operands, [f"r{number}"], name=f"r{number}", **attrs))
        nodes.append(node("Cast", [f"r{number}"], [f"c{number}"], to=getattr(TensorProto, dtype)))
        nodes.append(node("Cast", [f"c{number}"], [f"v{number}"], to=INT64, name=f"v{number}"))
    outputs = [name for each in nodes for name in each.output if name.startswith("v")]
    return make_model(nodes, {"x": (6, 6), "ids": (6, 6)}, outputs, CONSTANTS, dtypes={"ids": INT64})


@settings(max_examples=25)
@given(model=whole_numbers(), seed=st.integers(0, 99))
def test_all_values_lie_in_their_spans(model: onnx.ModelProto, seed: int) -> None:
    rng = np.random.default_rng(seed)
    inputs = {"x": rng.standard_normal((6, 6)).astype(np.float32), "ids": rng.integers(-(2**31), 2**31 - 200, (6, 6))}
    values = dict(zip([output.name for output in model.graph.output], reference(model, inputs), strict=True))
    assume(all(abs(value).max() < 2**31 - 128 for value in values.values()))
    mod, params = from_onnx(model)
    mod = relax.transform.ConvertToDataflow(min_size=1)(normalize(mod, params))
    lifted = lift_constants(mod["main"])
    plan = make_plan(lifted.func, lifted.constants, byoc.scheduler(BuildOptions(device="inf2"), {}))
    spans = {plan.decisions[var].origin.name: plan.span_of(var) for var in plan.decisions}
    for name, span in spans.items():
        if span is not None and name in values:
            assert span[0] <= values[name].min(), (name, span)
            assert values[name].max() <= span[1], (name, span)
    check(model, inputs, BuildOptions(optlevel=1))
