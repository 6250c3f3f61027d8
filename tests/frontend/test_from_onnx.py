"""from_onnx: what it returns, and that every call knows its node."""

import numpy as np
import pytest
from onnx import helper
from tvm import relax

from tests.onnx_models import make_model, mixed_model, reference
from tvm_neuron import relay
from tvm_neuron.frontend import from_onnx
from tvm_neuron.frontend.origin import Origin, bindings_of, origin_of

WEIGHT = np.arange(64, dtype="float32").reshape(8, 8)


def test_weights_are_inputs_after_the_models_own_and_not_in_the_printed_module() -> None:
    mod, params = from_onnx(mixed_model())
    assert [var.name for var in mod["main"].params] == ["x", "w", "w2"]
    assert list(params) == ["w", "w2"]
    assert len(mod.script(show_meta=False)) < 6000


def test_freeze_params_decides_whether_main_refers_to_the_weights() -> None:
    model = mixed_model()
    assert "params" in from_onnx(model)[0]["main"].attrs
    assert "params" not in from_onnx(model, freeze_params=False)[0]["main"].attrs


def test_a_path_gives_the_same_module(tmp_path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(mixed_model().SerializeToString())
    assert from_onnx(path)[0].script() == from_onnx(mixed_model())[0].script()


def test_every_call_carries_its_node() -> None:
    mod, _ = from_onnx(mixed_model())
    found = {origin_of(b.value).name: b for b in bindings_of(mod["main"]) if isinstance(b.value, relax.Call)}
    assert set(found) == {n.name for n in mixed_model().graph.node} - {"identity"}
    assert origin_of(found["conv"].value) == Origin("conv", "Conv")


def test_calls_inside_one_node_belong_to_it() -> None:
    gemm = helper.make_node("Gemm", ["x", "w", "b"], ["g"], name="gemm", transB=1, alpha=0.5)
    relu = helper.make_node("Relu", ["g"], ["y"], name="relu")
    model = make_model([gemm, relu], {"x": [2, 8]}, ["y"], {"w": WEIGHT, "b": np.ones(8, "float32")})
    calls = [b.value for b in bindings_of(from_onnx(model)[0]["main"]) if isinstance(b.value, relax.Call)]
    assert [origin_of(call).name for call in calls] == ["gemm"] * (len(calls) - 1) + ["relu"]
    assert len(calls) == 5


def test_nodes_without_a_name_or_with_a_taken_one_get_their_own() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["a"]), *(helper.make_node("Relu", ["a"], [o], name="r") for o in "bc")]
    model = make_model([*nodes, helper.make_node("Add", ["b", "c"], ["y"])], {"x": [4]}, ["y"])
    calls = [b.value for b in bindings_of(from_onnx(model)[0]["main"]) if isinstance(b.value, relax.Call)]
    assert [str(origin_of(call)) for call in calls] == ["Relu_0 (Relu)", "r (Relu)", "Relu_2 (Relu)", "Add_3 (Add)"]


@pytest.mark.parametrize(("op", "relax_op"), [("Sum", "relax.add"), ("Max", "relax.maximum"), ("Min", "relax.minimum")])
def test_variadic_operators_are_chains(op: str, relax_op: str) -> None:
    model = make_model([helper.make_node(op, ["x", "x", "x"], ["y"])], {"x": [4]}, ["y"])
    calls = [b.value for b in bindings_of(from_onnx(model)[0]["main"]) if isinstance(b.value, relax.Call)]
    assert [call.op.name for call in calls] == [relax_op] * 2


@pytest.mark.parametrize("read", [["a"], ["b"], ["a", "c"]])
@pytest.mark.parametrize("opset", [13, 18])
def test_outputs_of_a_split_that_nothing_reads_still_take_their_part(read: list[str], opset: int) -> None:
    split = helper.make_node("Split", ["x"], ["a", "b", "c"], axis=1, **({"num_outputs": 3} if opset == 18 else {}))
    nodes = [split, *(helper.make_node("Relu", [name], [f"y{name}"]) for name in read)]
    model = make_model(nodes, {"x": [2, 9]}, [f"y{name}" for name in read], opset=opset)
    x = np.random.default_rng(0).standard_normal((2, 9)).astype("float32")
    mod, params = from_onnx(model)
    executor = relay.build(mod, target="llvm", params=params)["default"]()
    executor.run(x=x)
    for index, expected in enumerate(reference(model, {"x": x})):
        np.testing.assert_array_equal(executor.get_output(index).numpy(), expected)
