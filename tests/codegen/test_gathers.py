"""Reads at positions that are known at run time only, on a chip with computed addresses, against NumPy."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest
import tvm
from hypothesis import example, given, settings
from hypothesis import strategies as st
from onnx import NodeProto, helper, numpy_helper

import tvm_neuron
from tests.onnx_models import Arrays, reference
from tvm_neuron import neff, relay, runtime
from tvm_neuron.errors import PositionError
from tvm_neuron.hw import load_device
from tvm_neuron.hw.load import device_to_dict
from tvm_neuron.isa import DmaGather, DramTile
from tvm_neuron.sim import Machine

RNG = np.random.default_rng(5)
INF1 = "its positions are known at run time only; the DMA of inf1 has no computed addresses"


def model_of(nodes: list[NodeProto], inputs: Arrays, weights: Arrays) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "gather",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
            for name, value in inputs.items()
        ],
        [onnx.ValueInfoProto(name="y")],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    model.graph.output[0].CopyFrom(onnx.shape_inference.infer_shapes(model).graph.output[0])
    return model


def build(
    nodes: list[NodeProto], inputs: Arrays, weights: Arrays, target: str | dict[str, str] = "neuron/inf2"
) -> tvm.runtime.Module:
    """Without rounding of large tensors between operators."""
    mod, params = relay.frontend.from_onnx(model_of(nodes, inputs, weights))
    return relay.build(mod, target=target, params=params, options=tvm_neuron.BuildOptions(fp32_cast="none"))


def run(library: tvm.runtime.Module, inputs: Arrays) -> np.ndarray:
    executor = relay.graph_executor.GraphModule(library["default"](tvm.device("neuron")))
    executor.run(**inputs)
    return executor.get_output(0).numpy()


def check(nodes: list[NodeProto], inputs: Arrays, weights: Arrays) -> neff.Neff:
    """All on the core, what onnxruntime says to the bit (data are only moved), the same in every mode."""
    library = build(nodes, inputs, weights)
    placement = tvm_neuron.report(library).placement
    assert {row.where for row in placement} <= {"neuroncore", "compile time"}, placement
    found = run(library, inputs)
    (wanted,) = reference(model_of(nodes, inputs, weights), inputs)
    assert found.shape == wanted.shape
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)
    (data,) = runtime.neffs(library).values()
    compiled = neff.read(data)
    machine = Machine(compiled.program, compiled.device, compiled.weights)
    kinds = {tensor.name: tensor.dtype for tensor in compiled.program.tensors}
    given_to_core = {name: np.atleast_1d(value).astype(kinds[name]) for name, value in inputs.items()}
    runs = [machine.run(given_to_core, mode)["y"] for mode in ("nest", "step", "strict")]
    assert len({result.tobytes() for result in runs}) == 1
    return compiled


@dataclass(frozen=True)
class Case:
    """`where` says whether the data are a constant, an input, or computed before on the core."""

    op: str
    shape: tuple[int, ...]
    indices: tuple[int, ...]
    axis: int
    where: str
    dtype: type = np.int64


@st.composite
def cases(draw: st.DrawFn) -> Case:
    op = draw(st.sampled_from(["Gather", "GatherElements", "GatherND"]))
    shape = tuple(draw(st.lists(st.sampled_from([1, 2, 3, 7, 33, 140]), min_size=1, max_size=3)))
    axis = draw(st.integers(0, len(shape) - 1))
    if op == "GatherElements":
        indices = tuple(draw(st.sampled_from([1, 5, 150])) if d == axis else extent for d, extent in enumerate(shape))
    else:
        indices = tuple(draw(st.lists(st.sampled_from([1, 2, 9, 130]), max_size=2)))
    if op == "GatherND":
        indices = (*(indices or (4,)), axis + 1)
    return Case(op, shape, indices, axis, draw(st.sampled_from(["constant", "input", "computed"])))


def values_of(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """Data and indices, some of them negative."""
    data = RNG.standard_normal(case.shape).astype(np.float32)
    extents = np.array(case.shape[: case.indices[-1]] if case.op == "GatherND" else case.shape[case.axis])
    return data, (RNG.integers(-extents, extents, case.indices)).astype(case.dtype)


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(case=cases())
@example(case=Case("Gather", (300, 64), (1, 20), 0, "constant"))
@example(case=Case("Gather", (300, 64), (), 0, "computed"))
@example(case=Case("Gather", (12,), (), 0, "input"))
@example(case=Case("Gather", (40, 8), (1, 200), 0, "computed", np.int32))
@example(case=Case("Gather", (6, 30, 5), (2, 5), 1, "input"))
@example(case=Case("GatherND", (10, 12, 20), (2, 5, 2), 1, "computed"))
@example(case=Case("GatherElements", (140, 33), (150, 33), 0, "computed"))
@example(case=Case("Gather", (33, 140, 1), (2, 130), 2, "constant"))  # in tiles
def test_what_is_found_is_what_lies_there(case: Case) -> None:
    data, indices = values_of(case)
    source = "r" if case.where == "computed" else "d"
    attrs = {} if case.op == "GatherND" else {"axis": case.axis}
    nodes = [helper.make_node(case.op, [source, "i"], ["g"], name="look", **attrs)]
    nodes = [helper.make_node("Relu", ["d"], ["r"], name="relu"), *nodes] if case.where == "computed" else nodes
    nodes.append(helper.make_node("Neg", ["g"], ["y"], name="neg"))
    constants = {"d": data} if case.where == "constant" else {}
    check(nodes, {"i": indices} | ({} if constants else {"d": data}), constants)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.int8, np.float16, np.bool_])
def test_data_of_every_dtype(dtype: type) -> None:
    data = RNG.integers(-100, 100, (50, 6)).astype(dtype)
    node = helper.make_node("Gather", ["d", "i"], ["y"], name="look")
    check([node], {"i": np.array([3, -1, 49]), "d": data}, {})
    check([node], {"i": np.array([3, -1, 49])}, {"d": data})


def test_indices_that_the_core_computes() -> None:
    """The row of the largest element, which the core finds itself."""
    nodes = [
        helper.make_node("ArgMax", ["x"], ["at"], name="argmax", axis=1, keepdims=0),
        helper.make_node("Gather", ["table", "at"], ["y"], name="look"),
    ]
    table = RNG.standard_normal((30, 20)).astype(np.float32)
    check(nodes, {"x": RNG.standard_normal((12, 30)).astype(np.float32)}, {"table": table})


@pytest.mark.slow
def test_only_the_rows_looked_up_are_moved() -> None:
    """An embedding of BERT's size: 128 rows of 768 out of 30522."""
    table = RNG.standard_normal((30522, 768)).astype(np.float32)
    indices = RNG.integers(0, 30522, (1, 128))
    library = build([helper.make_node("Gather", ["d", "i"], ["y"], name="look")], {"i": indices}, {"d": table})
    np.testing.assert_array_equal(run(library, {"i": indices}), table[indices])
    (data,) = runtime.neffs(library).values()
    report = tvm_neuron.report(library)
    assert report.dram_bytes == 128 * 768 * 4 * 2 + 128 * 4
    assert report.roofline_us < report.latency_us < 10
    (gather,) = [i for _, i in neff.read(data).program.instructions() if isinstance(i, DmaGather)]
    assert isinstance(gather.source, DramTile)
    assert gather.source.dims[0] == (768, 30522)


@pytest.mark.parametrize("target", ["neuron/inf2", "neuron"])
@pytest.mark.parametrize(
    ("op", "index"), [("Gather", 30), ("Gather", -31), ("Gather", 2**40 - 1), ("GatherElements", 30), ("GatherND", -31)]
)
def test_an_index_outside_is_refused_by_name(target: str, op: str, index: int) -> None:
    indices = np.zeros((2, 1), np.int64)
    inputs = {"i": indices, "d": RNG.standard_normal((30, 4)).astype(np.float32)}
    library = build([helper.make_node(op, ["d", "i"], ["y"], name="look")], inputs, {}, target)
    run(library, inputs)
    indices[1, 0] = index if index < 2**31 or target == "neuron" else 2**31 - 1
    with pytest.raises(PositionError, match=rf"{op} 'look': (index|position) -?\d+ lies outside of the 30 elements"):
        run(library, inputs)


def test_one_index_outside_is_not_made_good_by_another() -> None:
    inputs = {"i": np.array([[1, 4]]), "d": RNG.standard_normal((30, 4)).astype(np.float32)}
    library = build([helper.make_node("GatherND", ["d", "i"], ["y"], name="look")], inputs, {})
    with pytest.raises(PositionError, match="position -1 lies outside of the 120 elements"):
        run(library, inputs)


def test_a_chip_without_computed_addresses_says_so() -> None:
    inputs = {"i": np.array([[1, -4]]), "d": RNG.standard_normal((30, 4)).astype(np.float32)}
    library = build([helper.make_node("Gather", ["d", "i"], ["y"], name="look")], inputs, {}, "neuron/inf1")
    (row,) = tvm_neuron.report(library).placement
    assert (row.where, row.reason) == ("cpu", INF1)
    np.testing.assert_array_equal(run(library, inputs), inputs["d"][inputs["i"]])


def test_positions_that_do_not_stay_in_a_small_memory_are_brought_back(tmp_path: Path) -> None:
    """On a chip with 24 KiB of SBUF in each partition, indices that are gathered with twice, far apart."""
    raw = device_to_dict(load_device("inf2"))
    raw |= {"name": "small", "sbuf_bytes_per_partition": {"value": 24 << 10, "source": "this test"}}
    (tmp_path / "small.json").write_text(json.dumps(raw))
    indices = RNG.integers(-128, 128, (128, 2000))
    inputs = {"i": indices, "d": RNG.standard_normal((128, 2000)).astype(np.float32)}
    nodes = [
        helper.make_node("GatherElements", ["d", "i"], ["g"], name="look"),
        helper.make_node("ReduceMax", ["g", "axes"], ["m"], name="most"),
        helper.make_node("Add", ["g", "m"], ["s"], name="add"),
        helper.make_node("GatherElements", ["s", "i"], ["y"], name="again"),
    ]
    library = build(nodes, inputs, {"axes": np.int64([1])}, {"tag": "neuron", "device": str(tmp_path / "small.json")})
    found = np.take_along_axis(inputs["d"], indices, 0)
    wanted = np.take_along_axis(found + found.max(1, keepdims=True), indices, 0)
    np.testing.assert_array_equal(run(library, inputs), wanted)
    (data,) = runtime.neffs(library).values()
    scratch = [tensor.name for tensor in neff.read(data).program.tensors if tensor.kind == "scratch"]
    assert any("positions" in name for name in scratch)


@pytest.mark.parametrize("width", [1, 24, 64])
def test_positions_that_are_repeated_along_rows_choose_rows(width: int) -> None:
    """As `torch.gather` of rows asks: of data that the core computes, one descriptor each, not one for each number."""
    weights = {"w": RNG.standard_normal((16, width)).astype(np.float32), "rows": np.int64([1, 1, width])}
    inputs = {
        "x": RNG.standard_normal((2, 20, 16)).astype(np.float32),
        "at": RNG.integers(0, 20, (2, 60, 1)),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"]),
        helper.make_node("Expand", ["at", "rows"], ["every"]),
        helper.make_node("GatherElements", ["m", "every"], ["y"], axis=1),
    ]
    library = build(nodes, inputs, weights)
    (wanted,) = reference(model_of(nodes, inputs, weights), inputs)
    np.testing.assert_allclose(run(library, inputs), wanted, rtol=1e-5, atol=1e-5)  # sums of 16 in another order
    (data,) = runtime.neffs(library).values()
    compiled = neff.read(data)
    gathers = [part for _, part in compiled.program.instructions() if isinstance(part, DmaGather)]
    each_ns = compiled.device.dma_descriptor_ns / compiled.device.dma_engines
    assert 0 < sum(gather.cost(compiled.device).busy_cycles for gather in gathers) < 2 * 120 * each_ns
