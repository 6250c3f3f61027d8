"""One update along a dimension at a place known at run time: wholly on the NeuronCore, exact, and checked."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

import tvm_neuron
from tests.onnx_models import make_model, reference
from tvm_neuron import relay
from tvm_neuron.errors import PositionError

SHAPE = (2, 3, 16, 32)
INTEGERS = TensorProto.INT64


def run(op: str, attrs: dict[str, int], chip: str, is_known: bool = False, **inputs: np.ndarray) -> set[str]:
    """Which operators run on the CPU; the result is compared with onnxruntime's, in float32 without products.

    `is_known`: the places are constants of the model.
    """
    node = helper.make_node(op, ["x", "i", "u"], ["y"], name="written", **attrs)
    known = {name: inputs.pop(name) for name in (["i"] if is_known else [])}
    shapes = {name: each.shape for name, each in inputs.items()}
    model = make_model([node], shapes, ["y"], known, dtypes={} if is_known else {"i": INTEGERS})
    mod, params = relay.frontend.from_onnx(model)
    options = tvm_neuron.BuildOptions(fp32_cast="none", minimum_segment_size=1)
    library = relay.build(mod, target=f"neuron/{chip}", params=params, options=options)
    executor = relay.graph_executor.GraphModule(library["default"](tvm_neuron.device()))
    executor.run(**inputs)
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, inputs)[0]
    np.testing.assert_array_equal(executor.get_output(0).numpy(), expected)
    return {row.op for row in tvm_neuron.report(library).placed("cpu")}


def data(*shape: int) -> np.ndarray:
    x = np.random.default_rng([*shape]).standard_normal(shape, np.float32)
    x[..., 0] = np.inf  # what is chosen between is neither added nor multiplied
    return x


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
@pytest.mark.parametrize("places", [[[15]], [[-1]], [[0, 2]], [[1, -3, 7, 31]]], ids=str)
def test_scatter_nd(places: list[list[int]], chip: str) -> None:
    depth = len(places[0])
    x = data(*SHAPE) if depth > 1 else data(16, *SHAPE)
    on_cpu = run("ScatterND", {}, chip, x=x, i=np.int64(places), u=data(1, *x.shape[depth:], 1)[..., 0])
    assert on_cpu == (set() if chip == "inf2" else {"ScatterND"})  # a table on inf1 has no computed addresses


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
@pytest.mark.parametrize(
    "box", [((1, 3), (0, 5)), ((0, 4), (2, 5)), ((1, 2), (3, 4), (2, 6)), ((0, 4), (0, 5), (0, 6)), ((1, 4),)], ids=str
)
def test_a_box_that_is_assigned_to(box: tuple[tuple[int, int], ...], chip: str) -> None:
    """As of `x[:, 1:, 3:5] = u`, for which exporters write out all places."""
    x, extents = data(4, 5, 6), [high - low for low, high in box]
    places = np.stack(np.meshgrid(*(np.arange(low, high) for low, high in box), indexing="ij"), axis=-1)
    updates = data(*extents, *x.shape[len(box) :], 1)[..., 0]
    places -= np.array(x.shape[: len(box)])  # counted from the end
    assert run("ScatterND", {}, chip, is_known=True, x=x, i=places, u=updates) == set()


def test_a_box_whose_places_are_written_out_by_a_model() -> None:
    """Of 306,544 whole numbers, from counts along each dimension: none is left to the CPU."""
    rows, columns = 196, 784
    node = helper.make_node
    nodes = [
        node("Expand", ["row", "all"], ["rows"]), node("Expand", ["column", "all"], ["columns"]),
        node("Unsqueeze", ["rows", "last"], ["r"]), node("Unsqueeze", ["columns", "last"], ["c"]),
        node("Concat", ["r", "c"], ["i"], axis=-1), node("ScatterND", ["x", "i", "u"], ["y"]),
    ]  # fmt: skip
    constants = {
        "row": np.arange(rows)[:, None], "column": np.arange(2, columns)[None], "all": np.int64([rows, columns - 2]),
        "last": np.int64([2]),
    }  # fmt: skip
    inputs = {"x": data(rows, columns), "u": data(rows, columns - 2)}
    model = make_model(nodes, {name: value.shape for name, value in inputs.items()}, ["y"], constants)
    mod, params = relay.frontend.from_onnx(model)
    library = relay.build(mod, "neuron/inf2", params=params)
    assert not tvm_neuron.report(library).placed("cpu")
    executor = relay.graph_executor.GraphModule(library["default"](tvm_neuron.device()))
    executor.run(**inputs)
    np.testing.assert_array_equal(executor.get_output(0).numpy(), reference(model, inputs)[0])


@pytest.mark.parametrize("axis", [0, 2, -1])
def test_scatter_elements(axis: int) -> None:
    extents = [1 if d == axis % 4 else size for d, size in enumerate(SHAPE)]
    low, high = -SHAPE[axis], SHAPE[axis]
    i = np.random.default_rng(axis + 1).integers(low, high, extents)
    assert run("ScatterElements", {"axis": axis}, "inf2", x=data(*SHAPE), i=i, u=data(*extents)) == set()


@pytest.mark.parametrize("place", [16, -17])
def test_a_place_outside_is_an_error_that_names_the_operator(place: int) -> None:
    with pytest.raises(PositionError, match=r"written.*16"):
        run("ScatterND", {}, "inf2", x=data(16, 4), i=np.int64([[place]]), u=data(1, 4))


def test_forms_that_stay_as_they_are() -> None:
    """Several updates, of which the last of a place counts, and those that are added up."""
    i = np.int64([[3], [3], [-16]])
    assert run("ScatterND", {}, "inf2", x=data(16, 4), i=i, u=data(3, 4)) == {"ScatterND"}
    model_x = np.abs(data(16, 4)[:, 1:])
    assert run("ScatterND", {"reduction": "add"}, "inf2", x=model_x, i=i[:1], u=model_x[:1]) == {"ScatterND"}


def test_as_many_updates_as_places_are_found() -> None:
    nodes = [
        helper.make_node("NonZero", ["mask"], ["found"]), helper.make_node("Transpose", ["found"], ["i"]),
        helper.make_node("Shape", ["i"], ["size"]), helper.make_node("Gather", ["size", "zero"], ["count"]),
        helper.make_node("Slice", ["u", "zero", "count", "zero"], ["first"]),
        helper.make_node("ScatterND", ["x", "i", "first"], ["y"]),
    ]  # fmt: skip
    types = {"mask": TensorProto.BOOL}
    model = make_model(nodes, {"x": [4, 6], "mask": [4, 6], "u": [24]}, ["y"], {"zero": np.int64([0])}, dtypes=types)
    mod, params = relay.frontend.from_onnx(model)
    executor = relay.graph_executor.GraphModule(
        relay.build(mod, "neuron", params=params)["default"](tvm_neuron.device())
    )
    rng = np.random.default_rng(3)
    for share in (0.5, 0.2):
        mask = rng.random((4, 6)) < share
        inputs = {"x": data(4, 6), "mask": mask, "u": np.arange(24, dtype="float32")}
        executor.run(**inputs)
        expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, inputs)[0]
        np.testing.assert_array_equal(executor.get_output(0).numpy(), expected)


def test_constants_that_no_kernel_computes_leave_the_rest_on_the_core() -> None:
    """Of a table with 40 numbers for one place: it is the CPU's at run time, and the product stays where it was."""
    node, rng = helper.make_node, np.random.default_rng(4)
    constants = {
        "table": np.zeros(70_000, np.float32), "i": np.zeros(40, np.int64), "begin": np.int64([0]),
        "u": rng.standard_normal(40).astype(np.float32), "end": np.int64([32]),
        "w": (rng.standard_normal((48, 32)) / 7).astype(np.float32),
    }  # fmt: skip
    nodes = [
        node("ScatterElements", ["table", "i", "u"], ["written"], axis=0, reduction="max"),
        node("Slice", ["written", "begin", "end"], ["row"]),
        node("MatMul", ["x", "w"], ["product"]), node("Add", ["product", "row"], ["y"]),
    ]  # fmt: skip
    model, inputs = make_model(nodes, {"x": (20, 48)}, ["y"], constants), {"x": data(20, 49)[:, 1:]}
    mod, params = relay.frontend.from_onnx(model)
    options = tvm_neuron.BuildOptions(fp32_cast="none")
    library = relay.build(mod, "neuron/inf2", params=params, options=options)
    assert {row.op for row in tvm_neuron.report(library).placed("cpu")} == {"ScatterElements"}
    executor = relay.graph_executor.GraphModule(library["default"](tvm_neuron.device()))
    executor.run(**inputs)
    np.testing.assert_allclose(executor.get_output(0).numpy(), reference(model, inputs)[0], 0, 1e-5)
