"""Habits of scripts of Relay's days: modules by old names, contexts, weights set again, timing, the VM in steps."""

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm

from tvm_neuron import relay
from tvm_neuron.errors import InputError, OptionError
from tvm_neuron.relay.graph_executor import GraphModule

RNG = np.random.default_rng(11)
X, W = RNG.standard_normal((2, 8), dtype="float32"), RNG.standard_normal((4, 8), dtype="float32")


@pytest.fixture(name="mod", scope="module")
def _mod() -> tvm.IRModule:
    x, w = relay.var("x", shape=(2, 8)), relay.var("w", shape=(4, 8))
    return tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.dense(x, w)))


@pytest.fixture(name="library", scope="module")
def _library(mod: tvm.IRModule) -> relay.ExecutorFactory:
    return relay.build(mod, "neuron/inf2", params={"w": W})


def _agrees(result: Any) -> bool:
    exact = X.astype("float64") @ W.T.astype("float64")
    return bool((abs(np.asarray(result) - exact) <= 2 * 2.0**-8 * (abs(X) @ abs(W).T)).all())  # bfloat16's roundings


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("tvm.relay.op.nn", "conv2d"), ("tvm.relay.op.op", "get"), ("tvm.relay.op.tensor", "add"),
        ("tvm.relay.op.transform", "reshape"), ("tvm.relay.op.vision", "non_max_suppression"),
        ("tvm.relay.ty", "TensorType"), ("tvm.relay.function", "Function"), ("tvm.relay.param_dict", "save_param_dict"),
        ("tvm.relay.analysis.analysis", "free_vars"), ("tvm.relay.transform.transform", "InferType"),
        ("tvm.relay.frontend.onnx", "from_onnx"), ("tvm.relay.frontend.pytorch", "from_pytorch"),
        ("tvm.relay.expr_functor", "Call"), ("tvm.relay.op.contrib", "get_pattern_table"),
        ("tvm.relay.backend.vm", "compile"), ("tvm.relay.backend", "Executor"), ("tvm.runtime.executor", "AotModule"),
        ("tvm.ir", "structural_hash"), ("tvm", "TVMError"), ("tvm.tir", "Any"),
    ],
)  # fmt: skip
def test_modules_of_tvm_018(module: str, name: str) -> None:
    assert hasattr(import_module(module), name)


def test_contexts_and_arrays_of_2019(library: relay.ExecutorFactory) -> None:
    executor = relay.graph_executor.create(library.get_graph_json(), library.get_lib(), tvm.context("neuron", 0))
    executor.run(x=tvm.nd.array(X))
    assert _agrees(executor.get_output(0).asnumpy())


def test_devices_from_targets() -> None:
    target = tvm.target.Target("neuron")
    assert tvm.device(str(target), 0) == tvm.device(target) == tvm.cpu(0)
    assert tvm.device(str(tvm.target.Target("llvm")), 0) == tvm.device("llvm -mcpu=core-avx2", 0) == tvm.cpu(0)


def test_weights_may_be_set_again_to_what_they_are(library: relay.ExecutorFactory, tmp_path: Path) -> None:
    library.export_library(tmp_path / "net.so")
    for each in (library, tvm.runtime.load_module(str(tmp_path / "net.so"))):
        executor = GraphModule(each["default"](tvm.cpu()))
        executor.set_input("x", X)
        executor.set_input(w=tvm.nd.array(W))
        executor.run()
        assert _agrees(executor.get_output(0).numpy())
        with pytest.raises(InputError, match="'w' is a weight with which the library was compiled, with other values"):
            executor.set_input("w", W + 1)
        with pytest.raises(InputError, match="input 'v' is not one of the model's"):
            executor.set_input("v", W)


def test_time_evaluator(library: relay.ExecutorFactory) -> None:
    executor = GraphModule(library["default"](tvm.cpu()))
    executor.set_input("x", X)
    timed = executor.module.time_evaluator("run", tvm.cpu(), number=2, repeat=3)()
    assert len(timed.results) == 3
    assert 0 < timed.mean < 60
    with pytest.raises(InputError, match="time_evaluator times the function 'run', not 'walk'"):
        executor.module.time_evaluator("walk", tvm.cpu())


def test_debug_create(library: relay.ExecutorFactory) -> None:
    from tvm.contrib.debugger.debug_executor import GraphModuleDebug

    module = library["debug_create"]("default", tvm.cpu())
    executor = GraphModuleDebug(module, [tvm.cpu()], library.get_graph_json(), dump_root="")
    profile = executor.profile(x=X)
    assert _agrees(executor.debug_get_output(0).numpy())
    assert "nn.dense" in profile.table()
    assert profile.json() == executor.report.to_json()


def test_executors_and_runtimes_are_one(mod: tvm.IRModule) -> None:
    from tvm.relay.backend import Executor, Runtime
    from tvm.runtime.executor import AotModule

    chosen = Executor("aot", {"interface-api": "packed", "unpacked-api": False})
    library = relay.build(mod, "neuron", executor=chosen, runtime=Runtime("cpp"), params={"w": W})
    runner = AotModule(library["default"](tvm.cpu()))
    runner.set_input("x", X)
    runner.run()
    assert _agrees(runner.get_output(0).numpy())
    assert "interface-api" in chosen
    assert chosen["interface-api"] == "packed"
    with pytest.raises(OptionError, match=r"relay\.backend\.Runtime: 'crt' is not here, only cpp: there is no code"):
        Runtime("crt")
    with pytest.raises(OptionError, match=r"relay\.backend\.Executor: interface-api='c' is not here: there is no code"):
        Executor("aot", {"interface-api": "c"})


def test_the_vms_compiler_in_steps(mod: tvm.IRModule) -> None:
    compiler = relay.vm.VMCompiler()
    with pytest.raises(InputError, match=r"call lower\(mod, target\) first"):
        compiler.get_exec()
    compiler.set_params({"w": W})
    compiler.lower(mod, "neuron")
    compiler.codegen()
    machine = tvm.runtime.vm.VirtualMachine(compiler.get_exec(), tvm.cpu())
    machine.invoke_stateful("main", X)
    assert _agrees(machine.get_outputs()[0].numpy())


def test_device_copy_is_the_value_itself() -> None:
    x = relay.var("x", shape=(3,))
    copied = relay.device_copy(x + x, tvm.cpu(), tvm.device("neuron", 0))
    found = relay.create_executor(target="neuron").evaluate(relay.Function([x], copied))(np.float32([1, 2, 3]))
    assert found.numpy().tolist() == [2, 4, 6]


def test_equality_is_of_what_was_written() -> None:
    x = relay.var("x", shape=(2,))
    plain = relay.Function([x], relay.nn.batch_norm(x, *[relay.const(np.ones(2, "float32"))] * 4, axis=0)[0])
    typed = relay.transform.InferType()(tvm.IRModule.from_expr(plain))["main"]
    y = relay.var("y", shape=(2,))
    vectors = [relay.const(np.ones(2, "float32"))] * 4
    rounded = relay.nn.batch_norm(y, *vectors, axis=0, epsilon=float(np.float32(1e-5)))[0]
    other = relay.Function([y], rounded, ret_type=typed.ret_type)
    assert tvm.ir.structural_equal(typed.body, relay.bind(other, {y: typed.params[0]}).body)
    assert tvm.ir.structural_equal(typed, other)
    assert tvm.ir.structural_hash(typed) == tvm.ir.structural_hash(other)
    assert tvm.ir.structural_equal(tvm.IRModule.from_expr(typed), tvm.IRModule.from_expr(other))
    tvm.ir.assert_structural_equal(typed, other)
    changed = relay.Function([y], relay.nn.relu(rounded), ret_type=typed.ret_type)
    assert not tvm.ir.structural_equal(typed, changed)
    with pytest.raises(ValueError, match=r"caused by lhs at <root>\.body[^\0]*nn\.batch_norm[^\0]*nn\.relu"):
        tvm.ir.assert_structural_equal(typed, changed)
    assert not tvm.ir.structural_equal(relay.var("a", shape=(2,)), relay.var("a", shape=(2,)))  # two of them


def test_one_input_of_the_vm_at_a_time(mod: tvm.IRModule) -> None:
    machine = tvm.runtime.vm.VirtualMachine(relay.vm.compile(mod, "neuron"), tvm.cpu())
    assert [machine.get_input_index(name) for name in ("x", "w", "v")] == [0, 1, -1]
    machine.set_one_input("main", 1, W)
    machine.set_one_input("main", "x", X)
    assert _agrees(machine.run().numpy())
    machine.set_one_input("main", x=X)
    with pytest.raises(InputError, match="set_one_input takes the name or the position of one input, and its value"):
        machine.set_one_input("main", X)
    with pytest.raises(InputError, match="there is no input 2; the function takes x, w"):
        machine.set_one_input("main", 2, X)


def test_functions_of_executors_by_name(library: relay.ExecutorFactory) -> None:
    executor = library["default"](tvm.cpu())
    assert [executor[name]() for name in ("get_num_inputs", "get_num_outputs")] == [1, 1]
    executor["set_input"]("x", tvm.nd.array(X))
    executor["run"]()
    assert executor["get_input"](executor["get_input_index"]("x")).numpy().tolist() == X.tolist()
    assert _agrees(executor["get_output"](0).numpy())
    with pytest.raises(AttributeError, match="an executor has no function 'walk', only set_input, run"):
        executor["walk"]
