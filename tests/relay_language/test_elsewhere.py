"""Names of Relay that are not here say what to use instead, whichever way they are asked for."""

from importlib import import_module

import pytest
import tvm

from tvm_neuron import relay
from tvm_neuron.errors import ModelError
from tvm_neuron.relay.elsewhere import PLACES


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: relay.quantize, r"'relay\.quantize' is not here; instead: import a quantised ONNX model"),
        (lambda: relay.transform.gradient, r"'relay\.transform\.gradient' is not here; instead: there is no training"),
        (lambda: relay.nn.bitpack, r"'relay\.nn\.bitpack' is not here; instead: no engine has numbers of single bits"),
        (lambda: relay.nonsense, r"'relay\.nonsense' is not here; docs/relay\.md lists what is"),
        (
            lambda: relay.sparse_fill_empty_rows,
            r"'relay\.sparse_fill_empty_rows' is not here; instead: its size depends on the data",
        ),
        (lambda: relay.expr.RefCreate, r"'relay\.expr\.RefCreate' is not here; instead: there are no references"),
        (lambda: relay.frontend.common, r"'relay\.frontend\.common' is not here; instead: use relay\.transform"),
        (lambda: relay.qnn.requantize_config, r"'relay\.qnn\.requantize_config' is not here; instead: rounding"),
        (lambda: relay.op.contrib.cutlass, r"'relay\.op\.contrib\.cutlass' is not here; instead: the code generator"),
        (lambda: relay.op.nn._make, r"'relay\.nn\._make' is not here; instead: it was a part of TVM itself"),
        (lambda: tvm.autotvm.task, r"'tvm\.autotvm\.task' is not here and stays out; instead: schedules are searched"),
        (lambda: tvm.parser.fromtext(""), r"'tvm\.parser\.fromtext' is not here and stays out; instead: text"),
        (lambda: tvm.te.create_schedule([]), r"'tvm\.te\.create_schedule' is not here and stays out"),
    ],
)
def test_by_attribute(ask: object, message: str) -> None:
    with pytest.raises(AttributeError, match=message):
        ask()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tvm.relay.quantize", r"'tvm\.relay\.quantize' is not here; instead: import a quantised"),
        ("tvm.autotvm.tuner", r"'tvm\.autotvm\.tuner' is not here; instead: schedules are"),
        ("tvm.micro.testing", r"'tvm\.micro\.testing' is not here; instead: there is no code for microcontrollers"),
        ("tvm.runtime.profiler_vm", r"'tvm\.runtime\.profiler_vm' is not here; instead: tvm\.contrib\.debugger"),
        ("tvm.relay.backend.contrib.uma", "for UMA, describe a chip in a JSON file"),
        ("tvm.nonsense", "No module named 'tvm.nonsense'"),
    ],
)
def test_by_import(name: str, message: str) -> None:
    with pytest.raises(ModuleNotFoundError, match=message):
        import_module(name)
    package, _, last = name.rpartition(".")
    with pytest.raises(ImportError, match=message if package != "tvm" else "cannot import name 'nonsense'"):
        exec(f"from {package} import {last}")


def test_operators_by_name() -> None:
    x = relay.var("x", shape=(2,))
    assert relay.op.get("nn.relu") == relay.nn.relu(x).op
    with pytest.raises(ModelError, match=r"there is no operator 'nn\.nothing'; docs/relay\.md lists"):
        relay.op.get("nn.nothing")


def test_no_name_of_the_table_is_here() -> None:
    for place, hints in PLACES.items():
        module = relay
        for part in place.split(".")[1:]:
            module = getattr(module, part)
        assert [name for names in hints.values() for name in names.split() if name in vars(module)] == []
