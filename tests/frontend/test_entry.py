"""Modules whose entry is not called main, has sizes known at run time only, or weights that are constants already."""

import numpy as np
import pytest
import tvm
from tvm import relax

import tvm_neuron
from tvm_neuron import relay
from tvm_neuron.errors import ModelError, PlacementWarning
from tvm_neuron.frontend import normalize
from tvm_neuron.relay.graph_executor import GraphModule

X = np.random.default_rng(16).standard_normal((4, 6)).astype(np.float32)


def module(*names: str, shape: tuple[object, ...] = (4, 6)) -> tvm.IRModule:
    """Functions, each of which adds its input to itself and takes the larger of that and 0."""
    builder = relax.BlockBuilder()
    for name in names:
        x = relax.Var("x", relax.TensorType(shape, "float32"))
        with builder.function(name, [x]):
            with builder.dataflow():
                y = builder.emit_output(relax.op.nn.relu(builder.emit(relax.op.add(x, x))))
            builder.emit_func_output(y)
    return builder.get()


def test_the_entry_keeps_its_name() -> None:
    executable = tvm.compile(module("predict"), target="neuron")
    machine = relax.VirtualMachine(executable, tvm.cpu())
    np.testing.assert_array_equal(machine["predict"](tvm.runtime.tensor(X)).numpy(), np.maximum(2 * X, 0))
    assert {row.where for row in tvm_neuron.report(executable).placement} == {"neuroncore"}


def test_relay_calls_it_main() -> None:
    executor = GraphModule(relay.build(module("predict"), target="neuron")["default"]())
    executor.run(x=X)
    np.testing.assert_array_equal(executor.get_output(0).numpy(), np.maximum(2 * X, 0))


def nested(inner: str, outer: str) -> tvm.IRModule:
    """`outer` adds its input to what `inner` makes of it, its square."""
    builder = relax.BlockBuilder()
    x, z = (relax.Var(name, relax.TensorType((4, 6), "float32")) for name in "xz")
    with builder.function(inner, [x]):
        builder.emit_func_output(builder.emit(relax.op.multiply(x, x)))
    square = builder.get().get_global_var(inner)
    with builder.function(outer, [z]):
        builder.emit_func_output(builder.emit(relax.op.add(builder.emit(relax.Call(square, [z])), z)))
    return builder.get()


@pytest.mark.parametrize(("inner", "outer"), [("square", "main"), ("square", "predict"), ("main", "predict")])
def test_what_the_entry_calls_is_part_of_it(inner: str, outer: str) -> None:
    executable = tvm.compile(nested(inner, outer), target="neuron")
    assert {row.where for row in tvm_neuron.report(executable).placement} == {"neuroncore"}
    found = relax.VirtualMachine(executable, tvm.cpu())[outer](tvm.runtime.tensor(X)).numpy()
    np.testing.assert_allclose(found, X * X + X, rtol=1e-6, atol=1e-6)  # float32, two roundings


def test_several_entries_are_refused() -> None:
    wanted = "has 2 functions that can be called from outside: decode, prefill; .* if var.name_hint != 'prefill'"
    with pytest.raises(ModelError, match=wanted):
        tvm.compile(module("prefill", "decode"), target="neuron")
    both = module("prefill", "decode")
    one = tvm.IRModule({var: func for var, func in both.functions_items() if var.name_hint != "prefill"})
    machine = relax.VirtualMachine(tvm.compile(one, target="neuron"), tvm.cpu())
    np.testing.assert_array_equal(machine["decode"](tvm.runtime.tensor(X)).numpy(), np.maximum(2 * X, 0))


def test_functions_that_call_themselves_are_refused() -> None:
    mod = nested("square", "main")
    square, builder = mod.get_global_var("square"), relax.BlockBuilder(mod)
    x = relax.Var("x", relax.TensorType((4, 6), "float32"))
    again = relax.Function([x], relax.SeqExpr([], relax.Call(square, [x])), x.ty)
    builder.update_func(square, again)
    with pytest.raises(ModelError, match=r"function 'square' of the module calls itself \(main -> square -> square\)"):
        tvm.compile(builder.get(), target="neuron")


def test_a_module_without_functions_is_refused() -> None:
    with pytest.raises(ModelError, match="no function of Relax that can be called from outside"):
        normalize(tvm.IRModule())


def test_a_size_known_at_run_time_only_is_told() -> None:
    rows = tvm.tirx.Var("rows", "int64")
    wanted = r"input 'x' has the size 'rows' at axis 0.*BindSymbolicVars\(\{'rows': 8\}\)"
    with pytest.warns(PlacementWarning, match=wanted):
        executable = tvm.compile(module("main", shape=(rows, 6)), target="neuron")
    machine = relax.VirtualMachine(executable, tvm.cpu())
    np.testing.assert_array_equal(machine["main"](tvm.runtime.tensor(X)).numpy(), np.maximum(2 * X, 0))
    bound = relax.transform.BindSymbolicVars({"rows": 4})(module("main", shape=(rows, 6)))
    executable = tvm.compile(bound, target="neuron")
    assert {row.where for row in tvm_neuron.report(executable).placement} == {"neuroncore"}


def test_attached_weights_that_are_constants_already() -> None:
    """As TVM's importer of TFLite leaves them."""
    mod = module("main")
    mod["main"] = mod["main"].with_attrs({"num_input": 1, "params": [tvm.runtime.tensor(X), tvm.runtime.tensor(X)]})
    machine = relax.VirtualMachine(tvm.compile(mod, target="neuron"), tvm.cpu())
    np.testing.assert_array_equal(machine["main"](tvm.runtime.tensor(X)).numpy(), np.maximum(2 * X, 0))


def test_attached_weights_of_another_number_are_refused() -> None:
    mod = module("main")
    mod["main"] = mod["main"].with_attrs({"num_input": 0, "params": [tvm.runtime.tensor(X), tvm.runtime.tensor(X)]})
    with pytest.raises(ModelError, match="'params' holds 2 weights for the inputs x: give the weights by name"):
        normalize(mod)
