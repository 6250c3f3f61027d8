"""A script of Relay's days, and what it can do wrong."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm
from onnx import helper

import tvm_neuron.relay
from tests.onnx_models import make_model, mixed_model, reference

from tvm import relay  # isort: skip
from tvm.contrib import graph_executor  # isort: skip
from tvm_neuron.errors import InputError, ModelError, NeuronError

X = np.random.default_rng(0).standard_normal((1, 3, 8, 8)).astype("float32")


@pytest.fixture
def module() -> graph_executor.GraphModule:
    mod, params = relay.frontend.from_onnx(mixed_model(), {"x": (1, 3, 8, 8)})
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(mod, target="neuron", params=params)
    return graph_executor.GraphModule(lib["default"](tvm.device("neuron", 0)))


def test_the_names_resolve_here() -> None:
    assert relay is tvm_neuron.relay is tvm.relay
    assert graph_executor is tvm_neuron.relay.graph_executor
    assert tvm.device("cpu", 0) == tvm.cpu(0)


def test_set_input_run_get_output(module: graph_executor.GraphModule) -> None:
    expected = reference(mixed_model(), {"x": X})
    module.set_input("x", X)
    module.run()
    assert module.get_num_outputs() == 2
    for index, wanted in enumerate(expected):
        np.testing.assert_allclose(module.get_output(index).numpy(), wanted, rtol=1e-5, atol=1e-5)
    copy = tvm.nd.empty(expected[0].shape)
    assert module.get_output(0, copy) is copy
    np.testing.assert_array_equal(copy.numpy(), module.get_output(0).numpy())
    for key in ("out", np.int64(0)):
        np.testing.assert_array_equal(copy.numpy(), module.get_output(key).numpy())


def test_inputs_by_index_keyword_and_as_tensor(module: graph_executor.GraphModule) -> None:
    for set_it in (
        lambda: module.set_input(0, X),
        lambda: module.set_input(x=tvm.nd.array(X)),
        lambda: module.run(x=X),
    ):
        set_it()
        np.testing.assert_array_equal(module.get_input("x").numpy(), X)
    assert module.get_num_inputs() == 1
    assert module.get_input_index("x") == 0
    assert module.get_input_index("y") == -1
    assert module.get_input_info() == ({"x": (1, 3, 8, 8)}, {"x": "float32"})


def test_inputs_with_the_names_of_arguments() -> None:
    nodes = [helper.make_node("Sub", ["key", "value"], ["less"]), helper.make_node("Mul", ["less", "self"], ["y"])]
    model = make_model(nodes, {name: [2, 3] for name in ("key", "value", "self")}, ["y"])
    mod, params = relay.frontend.from_onnx(model)
    library = relay.build(mod, target="neuron", params=params)
    draw = np.random.default_rng(0)
    given = {name: draw.standard_normal((2, 3)).astype("float32") for name in ("key", "value", "self")}
    for use in ("set_input", "run"):
        executor = graph_executor.GraphModule(library["default"](tvm.cpu()))
        getattr(executor, use)(**given)
        executor.run()
        wanted = (given["key"] - given["value"]) * given["self"]
        np.testing.assert_allclose(executor.get_output("y").numpy(), wanted, rtol=1e-6)


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda m: m.run(), "input 'x' is missing; the model takes 'x'"),
        (lambda m: m.run(z=X), "input 'z' is not one of the model's; it takes 'x'"),
        (lambda m: m.set_input(1, X), "input 1 is not one of the model's; it takes 'x'"),
        (lambda m: m.set_input("x", X[:, :2]), r"input 'x' has shape \[1, 2, 8, 8\]; the model takes \[1, 3, 8, 8\]"),
        (lambda m: m.set_input("x", X.astype("complex64")), "input 'x' is complex64; the model takes float32: convert"),
        (lambda m: m.set_input("x", [[1.0, 2.0], [3.0]]), "input 'x' is no array: .*inhomogeneous"),
        (lambda m: m.set_input("x", "text"), r"input 'x' has shape \[\]; the model takes"),
        (lambda m: m.set_input("x"), "no value is given for input 'x'"),
        (lambda m: m.get_input("x"), "input 'x' was not set"),
        (lambda m: m.get_output(0), "there are no outputs before the first run"),
        (lambda m: (m.run(x=X), m.get_output(7)), "output 7 is not one of the model's; it gives 'out', 'gate'"),
        (lambda m: graph_executor.GraphModule(3), r"GraphModule takes lib\['default'\]\(device\), got int"),
    ],
)
def test_wrong_use(module: graph_executor.GraphModule, use: Callable[[object], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        use(module)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ([X], "params must be a dictionary of weights by name, got list"),
        ({"w": "text"}, r"params\['w'\] is a str without numbers: give an array"),
    ],
)
def test_what_are_no_weights(params: Any, message: str) -> None:
    mod, _ = relay.frontend.from_onnx(mixed_model())
    with pytest.raises(ModelError, match=message):
        relay.build(mod, target="neuron", params=params)


def test_benchmark(module: graph_executor.GraphModule) -> None:
    module.set_input("x", X)
    result = module.benchmark(tvm.cpu(0), repeat=3, number=2)
    assert len(result.results) == 3
    assert result.mean > 0
    assert len(module.benchmark(tvm.cpu(0), repeat=1, number=1, end_to_end=True, x=X).results) == 1


def test_the_library_has_the_name_it_was_given(tmp_path: Path) -> None:
    mod, params = relay.frontend.from_onnx(mixed_model())
    lib = relay.build(mod, target="neuron", params=params, mod_name="mixed")
    lib.export_library(tmp_path / "a.so")
    loaded = tvm.runtime.load_module(str(tmp_path / "a.so"))
    graph_executor.GraphModule(loaded["mixed"](tvm.cpu(0))).run(x=X)
    with pytest.raises(AttributeError):
        loaded["default"]


def test_the_old_triple(module: graph_executor.GraphModule) -> None:
    mod, params = relay.frontend.from_onnx(mixed_model())
    with pytest.warns(UserWarning, match="deprecated"):
        graph, lib, weights = relay.build(mod, "neuron", params=params)
    assert weights == {}
    created = graph_executor.create(graph, lib, tvm.cpu(0))
    created.run(x=X)


def test_numpy_params_and_another_target() -> None:
    mod, params = relay.frontend.from_onnx(mixed_model(), freeze_params=False)
    relay.build(mod, {"cpu": "neuron"}, params={name: value.numpy() for name, value in params.items()})
    with pytest.raises(ModelError, match="is neither a Neuron target nor 'llvm'"):
        relay.build(mod, {"kind": "c"}, params=params)


def test_what_is_no_module_and_no_target() -> None:
    mod, params = relay.frontend.from_onnx(mixed_model())
    with pytest.raises(ModelError, match=r"relay\.build takes a module or a function of Relay, .*, got tuple"):
        relay.build((mod, params), target="neuron")
    with pytest.raises(ModelError, match="target 'neuron/inf9' is unknown; use 'neuron', 'neuron/' with"):
        relay.build(mod, target="neuron/inf9", params=params)


def test_nothing_half_written(tmp_path: Path) -> None:
    mod, params = relay.frontend.from_onnx(mixed_model())
    lib = relay.build(mod, params=params)

    def fail(*_args: object, **_kwargs: object) -> None:
        raise NeuronError("disk full")

    with pytest.raises(NeuronError, match="disk full"):
        lib.export_library(tmp_path / "a.so", fcompile=fail)
    assert list(tmp_path.iterdir()) == []


def test_tensors_of_nested_tuples_are_outputs_one_after_another() -> None:
    x = relay.var("x", shape=(6,))
    parts = relay.split(x, 3)
    nested = relay.Tuple([x, relay.Tuple([parts.astuple(), relay.Tuple([x + x])])])
    library = relay.build(tvm.IRModule.from_expr(relay.Function([x], nested)), target="neuron")
    module = graph_executor.GraphModule(library["default"](tvm.cpu()))
    value = np.arange(6, dtype=np.float32)
    module.run(x=value)
    found = [module.get_output(index).numpy() for index in range(module.get_num_outputs())]
    expected = [value, value[:2], value[2:4], value[4:], 2 * value]
    assert len(found) == 5
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
