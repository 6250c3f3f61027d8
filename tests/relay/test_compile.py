"""`tvm.compile(mod, target="neuron")` and its options."""

import numpy as np
import pytest
import tvm
from onnx import helper
from tvm import relax

import tvm_neuron
from tests.onnx_models import Arrays, make_model, mixed_model, reference
from tvm_neuron import BuildOptions, build_options, runtime
from tvm_neuron.errors import DeviceError, OptionError, PlacementError
from tvm_neuron.frontend import from_onnx

X = np.random.default_rng(0).standard_normal((1, 3, 8, 8)).astype("float32")


def run(library: tvm.runtime.Executable, inputs: Arrays) -> list[np.ndarray]:
    machine = relax.VirtualMachine(library, tvm_neuron.device())
    return [value.numpy() for value in machine["main"](*map(tvm.runtime.tensor, inputs.values()))]


def test_results_and_manifest() -> None:
    model = mixed_model()
    library = tvm.compile(from_onnx(model)[0], target="neuron")
    for actual, expected in zip(run(library, {"x": X}), reference(model, {"x": X}), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)
    manifest = runtime.manifest(library)
    assert manifest["compiler"] == f"tvm_neuron {tvm_neuron.__version__}"
    assert manifest["device"] == "neuron/inf1"
    assert manifest["inputs"] == [{"name": "x", "shape": [1, 3, 8, 8], "dtype": "float32"}]
    assert [row["name"] for row in manifest["outputs"]] == ["out", "gate"]
    assert manifest["subgraphs"] == list(runtime.neffs(library)) == ["neuron_0", "neuron_1"]


@pytest.mark.parametrize(
    ("target", "device"),
    [
        ("neuron/inf2", "neuron/inf2"),
        ({"tag": "neuron/trn1"}, "neuron/trn1"),
        ({"tag": "neuron", "device": "inf2"}, "inf2"),
    ],
)
def test_the_target_chooses_the_device(target: str | dict[str, str], device: str) -> None:
    library = tvm.compile(from_onnx(mixed_model())[0], target=tvm.target.Target(target))
    assert runtime.manifest(library)["device"] == device


def test_an_unknown_device() -> None:
    with pytest.raises(DeviceError, match="unknown device 'neuron/inf9'"):
        tvm.compile(from_onnx(mixed_model())[0], target=tvm.target.Target({"tag": "neuron", "device": "neuron/inf9"}))


def test_the_device_of_the_options_counts_where_the_target_has_none() -> None:
    mod, params = from_onnx(make_model([helper.make_node("Relu", ["x"], ["y"])], {"x": [4, 8]}, ["y"]))
    options = BuildOptions(device="neuron/trn1")
    library = tvm_neuron.relay.build(mod, target="neuron", params=params, options=options)
    assert runtime.manifest(library)["device"] == "neuron/trn1"
    with pytest.raises(OptionError, match="the target's device is 'neuron/inf2', that of BuildOptions 'neuron/trn1'"):
        tvm_neuron.relay.build(mod, target="neuron/inf2", params=params, options=options)


def test_options_hold_inside_their_block() -> None:
    mod, _ = from_onnx(mixed_model())
    stages: list[str] = []
    with build_options(BuildOptions(must_compile=True, on_stage=stages.append)), pytest.raises(PlacementError):
        tvm.compile(mod, target="neuron")
    assert stages == ["normalise", "partition"]
    assert not runtime.manifest(tvm.compile(mod, target="neuron"))["options"]["must_compile"]


def test_other_targets_are_left_alone() -> None:
    model = mixed_model()
    executable = tvm.compile(from_onnx(model, freeze_params=False)[0], target=tvm.target.Target({"kind": "llvm"}))
    assert executable.mod.kind != "neuron"
    assert all(module.kind != "neuron" for module in executable.mod.imports)


def test_a_model_that_is_all_on_the_cpu_has_a_manifest_too() -> None:
    node = helper.make_node("TopK", ["x", "k"], ["y", "i"], name="a")
    model = make_model([node], {"x": [40]}, ["y", "i"], {"k": np.int64([30])})
    library = tvm.compile(from_onnx(model)[0], target="neuron")
    manifest = runtime.manifest(library)
    assert manifest["subgraphs"] == []
    assert manifest["order"] == ["cpu:topk"]
    assert manifest["placement"][0]["where"] == "cpu"


def test_the_shape_that_only_the_data_tells() -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], name="relu"),
        helper.make_node("NonZero", ["r"], ["where"], name="nonzero"),
        helper.make_node("Exp", ["r"], ["y"], name="exp"),
    ]
    model = make_model(nodes, {"x": [4, 4]}, ["where", "y"])
    x = np.random.default_rng(0).standard_normal((4, 4)).astype("float32")
    library = tvm.compile(from_onnx(model)[0], target="neuron")
    assert runtime.manifest(library)["order"] == ["neuron_0", "cpu:nonzero"]
    for actual, expected in zip(run(library, {"x": x}), reference(model, {"x": x}), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_arithmetic_on_a_size_that_only_the_data_tells() -> None:
    nodes = [
        helper.make_node("NonZero", ["x"], ["where"], name="nonzero"),
        helper.make_node("Shape", ["where"], ["shape"], name="shape"),
        helper.make_node("Gather", ["shape", "one"], ["count"], name="count"),
        helper.make_node("Cast", ["count"], ["factor"], name="cast", to=1),
        helper.make_node("Mul", ["x", "factor"], ["y"], name="mul"),
    ]
    model = make_model(nodes, {"x": [3, 4]}, ["factor", "y"], {"one": np.int64([1])})
    x = np.maximum(np.random.default_rng(0).standard_normal((3, 4)).astype("float32"), 0)
    library = tvm.compile(from_onnx(model)[0], target="neuron")
    for actual, expected in zip(run(library, {"x": x}), reference(model, {"x": x}), strict=True):
        np.testing.assert_array_equal(actual, expected)

