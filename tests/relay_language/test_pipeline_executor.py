"""Pipelines of modules: what runs through the stages is what NumPy computes, in order, also after a reload."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm

import tvm_neuron.relay  # noqa: F401 - its names

from tvm import relay  # isort: skip
from tvm.contrib import pipeline_executor, pipeline_executor_build  # isort: skip
from tvm_neuron.errors import InputError, NeffError, OptionError

RNG = np.random.default_rng(4)
SHAPE = (4, 6)


def _stages() -> tuple[tvm.IRModule, tvm.IRModule]:
    x, y = relay.var("x", shape=SHAPE), relay.var("y", shape=SHAPE)
    first = tvm.IRModule.from_expr(relay.Tuple([relay.add(x, y), relay.subtract(x, y)]))
    a, b = relay.var("a", shape=SHAPE), relay.var("b", shape=SHAPE)
    return first, tvm.IRModule.from_expr(relay.Function([a, b], relay.multiply(a, relay.nn.relu(b))))


def _config() -> Any:
    first, second = _stages()
    config = pipeline_executor_build.PipelineConfig()
    config[second].target = "neuron/inf2"  # named first, runs last
    config[first].target = "llvm"
    config[first].dev = tvm.cpu(0)
    for name in "xy":
        config["input"][f"in_{name}"].connect(config[first]["input"][name])
    config[first]["output"][0].connect(config[second]["input"]["a"])
    config[first]["output"][1].connect(config[second]["input"]["b"])
    config[second]["output"][0].connect(config["output"][0])
    config[first]["output"][1].connect(config["output"][1])
    return config


def _expected(x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    return [(x + y) * np.maximum(x - y, 0), x - y]


def test_runs_overlap_and_come_out_in_order(tmp_path: Path) -> None:
    factory = pipeline_executor_build.build(_config())
    loaded = pipeline_executor.PipelineModule.load_library(factory.export_library(tmp_path))
    for module in (pipeline_executor.PipelineModule(factory), loaded):
        assert (module.num_inputs, module.num_outputs) == (2, 2)
        assert module.get_input_pipeline_map("in_y") == ["0", "y"]
        given = [RNG.standard_normal((2, *SHAPE)).astype("float32") for _ in range(4)]
        for x, y in given:
            module.set_input("in_x", tvm.nd.array(x))
            module.set_input("in_y", y)
            module.run()
        assert module.num_executing_pipeline == 4
        assert module.get_input("in_y") is y
        for x, y in given:
            for found, exact in zip(module.get_output(), _expected(x, y), strict=True):
                np.testing.assert_allclose(found.numpy(), exact, rtol=1e-6, atol=1e-6)  # float32 in another order
        module.run()
        while not (found := module.get_output(synchronize=False)):
            pass
        np.testing.assert_allclose(found[1].numpy(), _expected(*given[-1])[1], rtol=1e-6, atol=1e-6)


def test_it_is_told_as_text() -> None:
    assert str(_config()) == (
        "Inputs\n  |in_x: mod0:x\n  |in_y: mod0:y\n\n"
        "output\n  |output(0) : mod1.output(0)\n  |output(1) : mod0.output(1)\n\n"
        "connections\n  |mod0.output(0)-> mod1.a\n  |mod0.output(1)-> mod1.b\n"
    )


def _other(config: Any) -> tvm.IRModule:
    return tvm.IRModule.from_expr(relay.nn.relu(relay.var("z", shape=(2,))))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c, m: c["inputs"], "'inputs' is neither 'input' nor 'output', nor a module"),
        (lambda c, m: c[m]["input"]["q"], "has no input 'q', only z"),
        (lambda c, m: c[m]["input"]["z"].connect(c["output"][0]), "input 'z' of a stage can't lead to output '0'"),
        (lambda c, m: c[m]["output"][0].connect(c[_stages()[1]]["input"]["a"]), "they must be the same"),
        (lambda c, m: c[m]["output"][0].connect(c[m]["input"]["z"]), "would depend on what it gives"),
        (lambda c, m: (c[m], pipeline_executor_build.build(c)), "input 'z' of mod1 needs one connection, it has 0"),
    ],
)
def test_connections_that_are_refused(call: Callable[[Any, Any], Any], message: str) -> None:
    config = _config()
    with pytest.raises(OptionError, match=message):
        call(config, _other(config))


def test_uses_that_are_refused(tmp_path: Path) -> None:
    module = pipeline_executor.PipelineModule(pipeline_executor_build.build(_config()))
    with pytest.raises(InputError, match="the pipeline has no input 'x', only in_x, in_y"):
        module.set_input("x", 0)
    with pytest.raises(InputError, match="input 'in_x' of the pipeline has not been set"):
        module.get_input("in_x")
    with pytest.raises(InputError, match="the pipeline needs the inputs in_x, in_y"):
        module.run()
    with pytest.raises(InputError, match="no run of the pipeline is under way"):
        module.get_output()
    (tmp_path / "config").write_text("{}")
    with pytest.raises(NeffError, match=r"is no pipeline that export_library\(\) wrote"):
        pipeline_executor.PipelineModule.load_library(tmp_path / "config")
    with pytest.raises(NeffError, match="can't be read"):
        pipeline_executor.PipelineModule.load_library(tmp_path / "none")
