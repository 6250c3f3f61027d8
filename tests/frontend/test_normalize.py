"""The graph passes keep what a model computes and where each call came from."""

import numpy as np
import onnx
import pytest
import tvm
from onnx import helper
from tvm import relax
from tvm.script import ir as I  # noqa: N812
from tvm.script import relax as R  # noqa: N812

from tests.onnx_models import make_model, reference
from tvm_neuron.errors import ModelError
from tvm_neuron.frontend import from_onnx, normalize
from tvm_neuron.frontend.origin import bindings_of, origin_of


def calls(mod: tvm.IRModule) -> list[relax.Call]:
    return [b.value for b in bindings_of(mod["main"]) if isinstance(b.value, relax.Call)]


def run(mod: tvm.IRModule, *inputs: np.ndarray) -> np.ndarray:
    executable = relax.build(mod, tvm.target.Target({"kind": "llvm"}))
    machine = relax.VirtualMachine(executable, tvm.cpu())
    return machine["main"](*map(tvm.runtime.tensor, inputs)).numpy()


def batch_norm_model() -> onnx.ModelProto:
    rng = np.random.default_rng(0)
    weights = {name: rng.uniform(0.5, 1.5, 24).astype("float32") for name in ("scale", "bias", "mean", "var")}
    nodes = [
        helper.make_node("BatchNormalization", ["x", "scale", "bias", "mean", "var"], ["b"], name="norm", epsilon=0.01),
        helper.make_node("Dropout", ["b"], ["d"], name="drop"),
        helper.make_node("Relu", ["d"], ["y"], name="relu"),
    ]
    return make_model(nodes, {"x": [2, 24, 3, 5]}, ["y"], weights)


def test_batch_norm_is_one_multiplication_and_one_addition_on_the_activation() -> None:
    mod, params = from_onnx(batch_norm_model())
    mod = normalize(mod, params)
    on_activation = [c.op.name for c in calls(mod) if tuple(int(d) for d in c.ty.shape) == (2, 24, 3, 5)]
    assert on_activation == ["relax.multiply", "relax.add", "relax.nn.relu"]
    assert [origin_of(call).name for call in calls(mod)] == ["norm"] * (len(calls(mod)) - 1) + ["relu"]


def test_normalising_does_not_change_the_result() -> None:
    mod, params = from_onnx(batch_norm_model())
    x = np.random.default_rng(1).standard_normal((2, 24, 3, 5)).astype("float32")
    (expected,) = reference(batch_norm_model(), {"x": x})
    np.testing.assert_allclose(run(normalize(mod, params), x), expected, rtol=1e-5, atol=1e-5)


def test_frozen_weights_need_no_params() -> None:
    mod, params = from_onnx(batch_norm_model())
    assert len(normalize(mod)["main"].params) == 1
    unfrozen, _ = from_onnx(batch_norm_model(), freeze_params=False)
    assert len(normalize(unfrozen)["main"].params) == 1 + len(params)


def test_weights_share_memory_with_the_params() -> None:
    node = helper.make_node("Add", ["x", "w"], ["y"])
    model = make_model([node], {"x": [32]}, ["y"], {"w": np.zeros(32, "float32")})
    mod, params = from_onnx(model)
    (constant,) = [arg for arg in calls(normalize(mod, params))[0].args if isinstance(arg, tvm.ir.GenericConst)]
    assert constant.value.same_as(params["w"])


def test_identities_are_dropped() -> None:
    shape = {"t": np.array([2, 3])}
    nodes = [helper.make_node("Reshape", ["x", "t"], ["r"]), helper.make_node("Relu", ["r"], ["y"])]
    mod, _ = from_onnx(make_model(nodes, {"x": [2, 3]}, ["y"], shape))
    assert [call.op.name for call in calls(normalize(mod))] == ["relax.nn.relu"]


def test_a_relax_module_gets_origins_from_its_variables() -> None:
    @I.ir_module
    class Native:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):  # noqa: N805
            with R.dataflow():
                hidden = R.nn.relu(x)
                result = R.exp(hidden)
                R.output(result)
            return result

    found = [str(origin_of(call)) for call in calls(normalize(Native))]
    assert found == ["hidden (nn.relu)", "result (exp)"]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"z": np.zeros(1, "float32")}, "params holds 'z', which is no input of the model: x"),
        ({"x": np.zeros((2, 2), "float32")}, r"params\['x'\] has shape \(2, 2\) and dtype float32; the model wants"),
        ({"x": np.zeros((2, 3), "int32")}, r"params\['x'\] has shape \(2, 3\) and dtype int32; the model wants"),
    ],
)
def test_params_that_do_not_fit_are_refused(params: dict[str, np.ndarray], message: str) -> None:
    mod, _ = from_onnx(make_model([helper.make_node("Relu", ["x"], ["y"])], {"x": [2, 3]}, ["y"]))
    with pytest.raises(ModelError, match=message):
        normalize(mod, {name: tvm.runtime.tensor(value) for name, value in params.items()})
