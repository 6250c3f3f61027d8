"""What scripts of Relay's days call beside the language: modules by their old names, the VM, folders, contexts."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm

import tvm_neuron
from tvm_neuron import relay
from tvm_neuron.errors import InputError, ModelError

RNG = np.random.default_rng(7)
X, W = RNG.standard_normal((2, 8), dtype="float32"), RNG.standard_normal((4, 8), dtype="float32")
PRODUCT = X.astype("float64") @ W.T.astype("float64")


@pytest.fixture(name="mod")
def _mod() -> tvm.IRModule:
    x, w = relay.var("x", shape=(2, 8)), relay.var("w", shape=(4, 8))
    return tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.dense(x, w)))


def _agrees(result: Any, ulp: float) -> bool:
    # each of 8 products is off by a rounding of both its factors
    return bool((abs(np.asarray(result) - PRODUCT) <= 2 * ulp * (abs(X) @ abs(W).T)).all())


def test_old_names_are_the_same_modules() -> None:
    import tvm.contrib.graph_runtime
    import tvm.contrib.utils
    import tvm.relay.build_module
    import tvm.relay.testing.resnet

    assert tvm.relay.testing.resnet is relay.testing.resnet
    assert tvm.relay.build_module is relay.build_module
    assert tvm.relay.build_module.create_executor is relay.create_executor
    assert tvm.contrib.graph_runtime is tvm.contrib.graph_executor
    assert tvm.relay.testing.resnet.__spec__.name == "tvm_neuron.relay.testing.resnet"
    assert tvm.runtime.NDArray is tvm.nd.NDArray
    assert tvm.contrib.utils is relay.contrib.utils
    assert tvm._ffi.get_global_func("runtime.ModulePackImportsToTensor") is not None
    with pytest.raises(ModuleNotFoundError):
        import tvm.contrib.no_such_module


def test_scripts_that_walk_expressions_ask_tvm_for_kinds(mod: tvm.IRModule) -> None:
    main = mod["main"]
    assert isinstance(main.body.op, tvm.ir.Op)
    assert not isinstance(main, tvm.ir.Op)
    assert relay.Function(main.params, main.body, main.ret_type, main.type_params, main.attrs).type_params == ()


def test_target_llvm_leaves_all_to_the_cpu(mod: tvm.IRModule) -> None:
    lib = relay.build(mod, "llvm", params={"w": W})
    assert [row.where for row in tvm_neuron.report(lib).placement] == ["cpu"]
    executor = relay.graph_executor.GraphModule(lib["default"](tvm.cpu()))
    executor.run(x=X)
    assert _agrees(executor.get_output(0).numpy(), 2.0**-24)


def test_of_several_targets_the_neuron_one_counts(mod: tvm.IRModule) -> None:
    for several in (["llvm", "neuron/inf2"], {"cpu": "llvm", "neuron": "neuron/inf2"}):
        assert tvm_neuron.report(relay.build(mod, several, params={"w": W})).device == "inf2"


def test_other_targets_are_refused(mod: tvm.IRModule) -> None:
    with pytest.raises(ModelError, match=r"target .*cuda.* is neither a Neuron target nor 'llvm'"):
        relay.build(mod, "cuda")


def test_the_virtual_machine_runs_what_was_compiled_saved_and_loaded(mod: tvm.IRModule, tmp_path: Path) -> None:
    compiled = relay.vm.compile(mod, "neuron/inf2", params={"w": W})
    code, lib = compiled.save()
    lib.export_library(tmp_path / "lib.so")
    loaded = relay.vm.Executable.load_exec(code, tvm.runtime.load_module(str(tmp_path / "lib.so")))
    for executable in (compiled, loaded):
        machine = tvm.runtime.vm.VirtualMachine(executable, tvm.cpu())
        machine.set_input("main", x=X)
        assert _agrees(machine.run().numpy(), 2.0**-9)
        assert _agrees(machine.invoke("main", X).numpy(), 2.0**-9)
        assert len(machine.benchmark(tvm.cpu(), X, repeat=2, number=1).results) == 2


def test_the_virtual_machine_gives_a_tuple_as_a_list() -> None:
    x = relay.var("x", shape=(2, 8))
    executable = relay.vm.compile(tvm.IRModule.from_expr(relay.Tuple([relay.nn.relu(x)])), "llvm")
    (found,) = tvm.runtime.vm.VirtualMachine(executable, tvm.cpu()).run(X)
    np.testing.assert_array_equal(found.numpy(), np.maximum(X, 0))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda machine: machine.invoke("other", X), "there is no function 'other', only 'main'"),
        (lambda machine: machine.run(X, X), "the function takes x; 2 values were given"),
        (lambda _: relay.vm.Executable.load_exec(b"{}", None), "this is no bytecode that Executable.save"),
    ],
)
def test_what_the_virtual_machine_refuses(mod: tvm.IRModule, call: Any, message: str) -> None:
    machine = tvm.runtime.vm.VirtualMachine(relay.vm.compile(mod, "llvm", params={"w": W}), tvm.cpu())
    with pytest.raises(InputError, match=message):
        call(machine)


def test_tvms_own_executables_get_tvms_virtual_machine() -> None:
    from tvm import relax

    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((2, 8), "float32"))
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(relax.op.exp(x)))
    machine = tvm.runtime.vm.VirtualMachine(tvm.compile(bb.get(), "llvm"), tvm.cpu())
    np.testing.assert_allclose(machine["main"](tvm.runtime.tensor(X)).numpy(), np.exp(X), rtol=1e-5)


def test_a_library_is_exported_as_a_tarball(mod: tvm.IRModule) -> None:
    from tvm.contrib import utils

    folder = utils.tempdir()
    relay.build(mod, "neuron/inf2", params={"w": W}).export_library(folder.relpath("lib.tar"))
    assert folder.listdir() == ["lib.tar"]
    executor = relay.graph_executor.GraphModule(
        tvm.runtime.load_module(folder.relpath("lib.tar"))["default"](tvm.cpu())
    )
    executor.run(x=X)
    assert _agrees(executor.get_output(0).numpy(), 2.0**-9)
    path = folder.path
    del folder
    assert not path.exists()


def test_a_folder_that_is_named_or_kept_stays(tmp_path: Path) -> None:
    from tvm.contrib import utils

    named = utils.tempdir(tmp_path / "named")
    assert named / "x" == tmp_path / "named" / "x"
    del named
    assert (tmp_path / "named").is_dir()
    kept = utils.tempdir(keep_for_debug=True)
    path = kept.path
    del kept
    assert path.is_dir()
    utils.tempdir(path).remove()
    assert not path.exists()


def test_the_debug_executor_tells_the_time_of_each_operator(mod: tvm.IRModule) -> None:
    from tvm.contrib.debugger import debug_executor

    lib = relay.build(mod, "neuron/inf2", params={"w": W})
    executor = debug_executor.create(lib.get_graph_json(), lib, tvm.cpu())
    assert "nn.dense_0" in executor.profile(x=X)
    assert _agrees(executor.debug_get_output(0).numpy(), 2.0**-9)
    (times,) = executor.run_individual(repeat=3)
    assert times == [tvm_neuron.report(lib).latency_us / 1000] * 3
    with pytest.raises(InputError, match=r"'nn\.dense_0' is none of the 1 outputs"):
        executor.debug_get_output("nn.dense_0")


def test_build_config_is_a_pass_context_and_optimize_gives_types(mod: tvm.IRModule) -> None:
    with relay.build_config(opt_level=3, disabled_pass=["AlterOpLayout"]):
        assert tvm.transform.PassContext.current().opt_level == 3
        typed, params = relay.optimize(mod, "neuron", {"w": W})
    assert typed["main"].body.checked_type.concrete_shape == (2, 4)
    assert params["w"] is W


def test_options_of_passes_by_their_old_names() -> None:
    old = {"relay.FuseOps.max_depth": 5, "tir.disable_vectorize": True, "relax.FuseOps.max_depth": 3}
    assert dict(tvm.transform.PassContext(config=old).config) == {
        "tirx.disable_vectorize": True, "relax.FuseOps.max_depth": 3
    }  # fmt: skip
    with pytest.raises(AttributeError, match=r"Invalid config option 'relay\.nonsense'"):
        tvm.transform.PassContext(config={"relay.nonsense": 1})


def test_weights_are_saved_and_loaded() -> None:
    found = relay.load_param_dict(relay.save_param_dict({"w": tvm.nd.array(W)}))
    np.testing.assert_array_equal(found["w"].numpy(), W)


def test_workloads_begin_numpys_random_numbers_anew() -> None:
    drawn = []
    for _ in range(2):
        relay.testing.create_workload(relay.testing.mlp.get_net(1))
        drawn.append(np.random.uniform(size=3).tolist())
    assert drawn[0] == drawn[1]
