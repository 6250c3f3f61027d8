"""Models of which only calls tell the sizes, or the values that sizes are made of."""

from pathlib import Path

import numpy as np
import onnx
import pytest
import tvm
from onnx import TensorProto, helper

from tvm_neuron import relay
from tvm_neuron.errors import InputError, OptionError, PlacementWarning
from tvm_neuron.frontend.onnx.checks import NeedsShapeError
from tvm_neuron.frontend.onnx.needs import NeedsValueError

RNG = np.random.default_rng(5)


def _model(*nodes: onnx.NodeProto, **inputs: tuple[int, list[int | str]]) -> onnx.ModelProto:
    values = [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in inputs.items()]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in nodes[-1].output]
    return helper.make_model(helper.make_graph(list(nodes), "open", values, outputs))


TILE = _model(
    helper.make_node("Tile", ["x", "repeats"], ["tiled"]), helper.make_node("Neg", ["tiled"], ["out"]),
    x=(TensorProto.FLOAT, ["rows", 3]), repeats=(TensorProto.INT64, [2]),
)  # fmt: skip


def test_each_call_tells_shapes_and_values() -> None:
    mod, params = relay.frontend.from_onnx(TILE)
    assert params == {}
    assert "%x: Tensor[(?, 3), float32]" in mod.astext()
    assert "tiled = Tile(x, repeats)" in mod.astext()
    run = relay.create_executor("vm", mod=relay.transform.InferType()(mod)).evaluate()
    for rows, repeats in ((2, (2, 1)), (4, (1, 3)), (2, (1, 3)), (2, (2, 1))):
        x = RNG.standard_normal((rows, 3), dtype="float32")
        assert (run(x, repeats=np.array(repeats)).numpy() == -np.tile(x, repeats)).all()


def test_the_virtual_machine_compiles_when_inputs_are_set() -> None:
    mod, params = relay.frontend.from_onnx(TILE)
    executable = relay.vm.compile(mod, "neuron", params=params)
    machine = tvm.runtime.vm.VirtualMachine(executable, tvm.cpu())
    x = RNG.standard_normal((2, 3), dtype="float32")
    machine.set_input("main", x, np.array([3, 1]))
    assert (machine.run().numpy() == -np.tile(x, (3, 1))).all()
    assert machine.get_outputs()[0].shape == (6, 3)
    assert machine.benchmark(tvm.cpu(), repeat=1, number=1).mean > 0
    with pytest.raises(InputError, match="save: this model is compiled for the shapes of each call; give all shapes"):
        executable.save()


def test_the_virtual_machine_takes_any_size_of_relays_own_functions() -> None:
    x, y = relay.var("x", shape=(relay.Any(), 3)), relay.var("y", shape=(3,))
    helper_name, mod = relay.GlobalVar("shifted"), tvm.IRModule()
    mod[helper_name] = relay.Function([x, y], relay.add(x, y))
    a, b = relay.var("a", shape=(relay.Any(), 3)), relay.var("b", shape=(3,))
    mod["main"] = relay.Function([a, b], relay.Tuple([relay.Call(helper_name, [a, b]), relay.nn.relu(a)]))
    machine = tvm.runtime.vm.VirtualMachine(relay.vm.compile(mod, "neuron"), tvm.cpu())
    for rows in (4, 2):
        first, second = RNG.standard_normal((rows, 3), dtype="float32"), RNG.standard_normal(3, dtype="float32")
        shifted, positive = machine.invoke("main", first, second)
        assert (shifted.numpy() == first + second).all()
        assert (positive.numpy() == np.maximum(first, 0)).all()


def test_several_results_are_a_list() -> None:
    node = helper.make_node("TopK", ["x", "k"], ["values", "where"])
    mod, _ = relay.frontend.from_onnx(_model(node, x=(TensorProto.FLOAT, [7]), k=(TensorProto.INT64, [1])))
    x = RNG.standard_normal(7, dtype="float32")
    values, where = relay.create_executor("vm", mod=mod).evaluate()(x, np.array([3]))
    assert (where.numpy() == np.argsort(-x)[:3]).all()
    assert (values.numpy() == -np.sort(-x)[:3]).all()


def test_a_loop_whose_end_depends_on_data() -> None:
    """A number is doubled until it is over 100."""
    scalar = ("i", TensorProto.INT64), ("go", TensorProto.BOOL), ("n", TensorProto.FLOAT)
    nodes = [helper.make_node("Add", ["n", "n"], ["twice"]), helper.make_node("Less", ["twice", "most"], ["still"])]
    body = helper.make_graph(
        nodes, "body", [helper.make_tensor_value_info(name, kind, []) for name, kind in scalar],
        [helper.make_tensor_value_info("still", TensorProto.BOOL, []), helper.make_tensor_value_info("twice", 1, [])],
        [helper.make_tensor("most", TensorProto.FLOAT, [], [100.0])],
    )  # fmt: skip
    loop = helper.make_node("Loop", ["count", "go", "start"], ["out"], body=body)
    inputs = {"count": (TensorProto.INT64, []), "go": (TensorProto.BOOL, []), "start": (TensorProto.FLOAT, [])}
    mod, _ = relay.frontend.from_onnx(_model(loop, **inputs))
    run = relay.create_executor("vm", mod=mod).evaluate()
    assert run(np.array(50), np.array(True), np.float32(3)).numpy() == 192
    assert run(np.array(50), np.array(True), np.float32(30)).numpy() == 120
    assert run(np.array(2), np.array(True), np.float32(3)).numpy() == 12
    with pytest.warns(PlacementWarning, match="nothing of the model runs on the NeuronCore"):
        library = relay.build(mod)  # one for all of these
    executor = library["default"](tvm.cpu())
    for count, start, wanted in ((50, 3, 192), (50, 30, 120), (2, 3, 12)):
        executor.run(count=np.array(count), go=np.array(True), start=np.float32(start))
        assert executor.get_output(0).numpy() == wanted


def test_a_library_needs_all_shapes_and_values() -> None:
    mod, params = relay.frontend.from_onnx(TILE)
    with pytest.raises(NeedsShapeError, match=r"input 'x' has the dynamic dimension 'rows' at axis 0; give its size"):
        relay.build(mod, "neuron", params=params)
    mod, params = relay.frontend.from_onnx(TILE, {"x": (2, 3)})
    with pytest.raises(NeedsValueError, match="needs the value of 'repeats' at compile time"):
        relay.build(mod, "neuron", params=params)


def test_a_size_given_as_any_is_open() -> None:
    node = helper.make_node("Exp", ["x"], ["out"])
    mod, _ = relay.frontend.from_onnx(_model(node, x=(TensorProto.FLOAT, [2, 3])), {"x": (relay.Any(), 3)})
    x = RNG.standard_normal((5, 3), dtype="float32")
    np.testing.assert_allclose(relay.create_executor("vm", mod=mod).evaluate()(x).numpy(), np.exp(x), rtol=1e-5)


def test_an_input_of_unknown_rank_stays_an_error() -> None:
    with pytest.raises(NeedsShapeError, match="input 'x' has no shape in the model"):
        relay.frontend.from_onnx(_model(helper.make_node("Exp", ["x"], ["out"]), x=(TensorProto.FLOAT, None)))


def test_a_given_shape_stands_for_the_models_own() -> None:
    node = helper.make_node("Exp", ["x"], ["out"])
    mod, _ = relay.frontend.from_onnx(_model(node, x=(TensorProto.FLOAT, [])), {"x": (4, 2)})
    assert [int(dim) for dim in mod["main"].ret_ty.shape] == [4, 2]


def test_a_copy_with_the_names_of_reports(tmp_path: Path) -> None:
    relay.frontend.from_onnx(TILE, {"x": (2, 3)}, export_node_renamed_model_path=str(tmp_path / "new"))
    (path,) = (tmp_path / "new").glob("tvm_exported_model_*.onnx")
    assert [node.name for node in onnx.load(path).graph.node] == ["Tile_0", "Neg_1"]
    assert [node.name for node in TILE.graph.node] == ["", ""]
    with pytest.raises(OptionError, match=r"tvm_exported_model_.* can't be written: File exists"):
        relay.frontend.from_onnx(TILE, {"x": (2, 3)}, export_node_renamed_model_path=str(path))


def test_regions_of_an_open_model_are_none() -> None:
    mod, _ = relay.frontend.from_onnx(TILE)
    tvm.ir.assert_structural_equal(relay.transform.AnnotateTarget("neuron")(mod), mod)


def test_weights_are_bound_by_name() -> None:
    weight = RNG.standard_normal((3, 200), dtype="float32")  # small ones are constants at once
    graph = _model(helper.make_node("MatMul", ["x", "w"], ["y"]), x=(TensorProto.FLOAT, [2, 3]))
    graph.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    mod, params = relay.frontend.from_onnx(graph, freeze_params=False)
    assert [param.name_hint for param in mod["main"].params] == ["x", "w"]
    mod["main"] = relay.build_module.bind_params_by_name(mod["main"], params)
    assert [param.name_hint for param in mod["main"].params] == ["x"]
    x = RNG.standard_normal((2, 3), dtype="float32")
    result = relay.create_executor("graph", mod=mod).evaluate()(x).numpy()
    # each of 3 products is off by a rounding of both its factors to bfloat16
    assert (abs(result - x.astype("float64") @ weight) <= 2 * 2.0**-8 * (abs(x) @ abs(weight))).all()
