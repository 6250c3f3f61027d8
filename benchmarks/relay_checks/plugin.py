"""A plugin for pytest: `tvm.testing` as TVM 0.18's tests use it, for the target neuron, and a record of each outcome.

Nothing of Relay is here: what a test asks of it, `tvm_neuron.relay` has, or the test fails.
"""

import json
import os
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tvm
import tvm.testing

import tvm_neuron.relay
from benchmarks.gallery import downloads
from tvm_neuron import BuildOptions, build_options
from tvm_neuron.errors import NeuronError

TARGET = "neuron/inf2"
_RECORD = Path(os.environ["RELAY_TESTS_RECORD"])
_GONE = {"newshape": "shape"}
"""Keywords that NumPy no longer has, and TVM's own reference functions still use."""

_CASES = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data", "node")
"""Where ONNX kept its backend's cases, which it makes itself now (`benchmarks.conformance` runs them)."""

_OPSET = {"opset_imports": [onnx.helper.make_opsetid("", 17)], "ir_version": 8}
"""What ONNX gave to models without a version in TVM 0.18's time; onnxruntime does not run its newest."""

_UNAVAILABLE = (
    "requires_gpu", "requires_cuda", "requires_arm_dot", "requires_x", "requires_x86_vnni", "requires_x86_amx",
    "requires_x86_avx512", "requires_x86",
)  # fmt: skip
_STAND_INS = (
    "tvm.autotvm", "tvm.topi.cuda", "tvm.topi.cuda.conv3d_winograd", "tvm.contrib.cudnn", "tvm.contrib.utils",
    "tvm.contrib.nvcc", "tvm.relay.backend", "tvm.relay.backend.runtime", "tvm.relay.backend.te_compiler",
    "tvm.relay.testing.byoc", "tvm.relay.testing.temp_op_attr", "tvm.relay.frontend.common", "tvm.relay.loops",
    "tvm.relay.prelude", "utils.assert_diagnostic",
)  # fmt: skip
"""Modules that test files import at their top and that are not here: empty, so that those who use them fail alone."""


class _Absent:
    """What a stand-in has under any name: it can be named and called, which does nothing."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, *_args: Any, **_kwargs: Any) -> Any:
        return self

    def __getattr__(self, name: str) -> Any:
        return _absent(self._name, name)


class Values:
    """Values of a parameter of tests; those of one `tvm.testing.parameters` go together."""

    def __init__(self, group: int, values: list[Any], ids: list[str] | None) -> None:
        self.group, self.values, self.ids = group, values, ids


def pytest_configure() -> None:
    """Puts the names in place."""
    warnings.simplefilter("ignore")
    count = iter(range(1_000_000))

    def parameter(*values: Any, ids: Any = None, by_dict: dict[str, Any] | None = None) -> Values:
        if by_dict:
            return Values(next(count), list(by_dict.values()), list(by_dict))
        return Values(next(count), list(values), ids)

    def parameters(*rows: Any, ids: Any = None) -> list[Values]:
        group = next(count)
        return [Values(group, [row[column] for row in rows], ids) for column in range(len(rows[0]))]

    def decorator(*given: Any, **_kwargs: Any) -> Any:
        return given[0] if given and callable(given[0]) else lambda test: test

    def fixture(func: Any = None, *, cache_return_value: bool = False) -> Any:
        return pytest.fixture(func) if func is not None else pytest.fixture

    def parametrize_targets(*given: Any) -> Any:
        if any("-mcpu" in str(target) for target in given):
            return pytest.mark.skip(reason="needs other hardware")
        mark = pytest.mark.parametrize(("target", "dev"), [(TARGET, tvm.cpu())])
        return mark(given[0]) if len(given) == 1 and callable(given[0]) else mark

    named: dict[str, Any] = {
        "enabled_targets": lambda: [(TARGET, tvm.cpu())], "parameter": parameter, "parameters": parameters,
        "fixture": fixture, "parametrize_targets": parametrize_targets, "requires_llvm": decorator,
        "uses_gpu": decorator, "known_failing_targets": lambda *_: decorator, "exclude_targets": lambda *_: decorator,
        "enable_span_filling": nullcontext, "disable_span_filling": nullcontext,
    }  # fmt: skip
    named |= dict.fromkeys(_UNAVAILABLE, pytest.mark.skip(reason="needs other hardware"))
    vars(tvm.testing).update(named)
    for name in _STAND_INS:
        _stand_in(name)
    _onnx_mapping()
    tvm.testing.assert_allclose = _comparing(tvm.testing.assert_allclose)
    make_model = onnx.helper.make_model
    onnx.helper.make_model = lambda graph, **given: make_model(graph, **_OPSET | given)
    if find_spec("torch"):
        downloads.keep_random_weights()
    tvm_neuron.relay.testing.check_grad = lambda *_args, **_kwargs: None  # there is no training here
    tvm_neuron.relay.testing.enabled_targets = named["enabled_targets"]
    np.product = np.prod
    for name in ("float", "bool", "int"):
        vars(np).setdefault(name, getattr(__builtins__, name, None) or __builtins__[name])
    np.in1d = np.isin
    listdir = os.listdir
    os.listdir = lambda path=".": [] if str(path) == _CASES and not os.path.isdir(path) else listdir(path)
    reshape = np.reshape
    np.reshape = lambda a, *args, **kwargs: reshape(a, *args, **{_GONE.get(k, k): v for k, v in kwargs.items()})


def _comparing(theirs: Callable[..., None]) -> Callable[..., None]:
    def assert_allclose(actual: Any, desired: Any, rtol: float = 1e-7, atol: float = 1e-7) -> None:
        """TVM's, which holds a float16 to less than its last bit: references round after each step, as kernels did."""
        if getattr(actual, "dtype", None) == np.float16:
            rtol = max(rtol, float(np.finfo(np.float16).eps))
        theirs(actual, desired, rtol=rtol, atol=atol)

    return assert_allclose


def _onnx_mapping() -> None:
    """`onnx.mapping`, which ONNX no longer has: numbers of dtypes, both ways."""
    numbers = {number: dtype for number in onnx.TensorProto.DataType.values() if (dtype := _numpy_dtype(number))}
    mapping = types.ModuleType("onnx.mapping")
    mapping.TENSOR_TYPE_TO_NP_TYPE = numbers
    mapping.NP_TYPE_TO_TENSOR_TYPE = {dtype: number for number, dtype in numbers.items() if dtype.name != "object"}
    sys.modules["onnx.mapping"] = onnx.mapping = mapping


def _numpy_dtype(number: int) -> np.dtype[Any] | None:
    try:
        return onnx.helper.tensor_dtype_to_np_dtype(number)
    except KeyError:
        return None


def _stand_in(name: str) -> None:
    if name in sys.modules:
        return
    try:
        __import__(name)
    except ImportError:
        module = types.ModuleType(name)
        module.__getattr__ = lambda key: _absent(name, key)
        sys.modules[name] = module
        parent, _, last = name.rpartition(".")
        if parent in sys.modules:
            setattr(sys.modules[parent], last, module)


def _absent(module: str, name: str) -> _Absent:
    if name.startswith("__"):
        raise AttributeError(name)
    return _Absent(f"{module}.{name}")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The parameters of module and class that a test takes, and target and device for those that ask for them."""
    spaces = [vars(metafunc.module), *(vars(cls) for cls in reversed(metafunc.cls.__mro__ if metafunc.cls else []))]
    known = {name: value for space in spaces for name, value in space.items() if isinstance(value, Values)}
    given = {name for mark in metafunc.definition.iter_markers("parametrize") for name in _names(mark.args[0])}
    groups: dict[int, list[str]] = {}
    for name, values in known.items():
        if name in metafunc.fixturenames and name not in given:
            groups.setdefault(values.group, []).append(name)
    for names in groups.values():
        columns = [known[name].values for name in names]
        rows = [row if len(names) > 1 else row[0] for row in zip(*columns, strict=True)]
        metafunc.parametrize(",".join(names), rows, ids=known[names[0]].ids)
    if "target" in metafunc.fixturenames and "target" not in given | known.keys():
        both = "dev" in metafunc.fixturenames
        metafunc.parametrize("target,dev" if both else "target", [(TARGET, tvm.cpu())] if both else [TARGET])


def _names(argument: Any) -> list[str]:
    return [name.strip() for name in argument.split(",")] if isinstance(argument, str) else list(argument)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Runs a test with products in float32."""
    del item
    with build_options(BuildOptions(fp32_cast="none", device=TARGET)):
        yield


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """Appends a line of JSON for each test."""
    outcome = yield
    report = outcome.get_result()
    if report.when == "call" or (report.when == "setup" and not report.passed):
        error = call.excinfo.value if call.excinfo else None
        row = {"name": item.nodeid, "result": _result(report, error), "reason": _reason(error)}
        with _RECORD.open("a") as record:
            print(json.dumps(row), file=record)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Counts a file that can't be read as one case that failed."""
    if report.failed:
        reason = str(report.longrepr).strip().splitlines()[-1]
        with _RECORD.open("a") as record:
            print(json.dumps({"name": report.nodeid, "result": "failed", "reason": reason}), file=record)


def _result(report: pytest.TestReport, error: BaseException | None) -> str:
    """`wrong` is a result that differs, `refused` an error of ours that says what is not taken."""
    if report.outcome == "skipped":
        return "skipped"
    if error is None:
        return report.outcome
    if isinstance(error, AssertionError) and any(word in str(error) for word in ("Not equal to", "Mismatch", "shapes")):
        return "wrong"
    if isinstance(error, AssertionError):
        return "failed"
    is_ours = isinstance(error, NeuronError) and type(error).__name__ != "InternalError"
    return "refused" if is_ours or "tvm_neuron.relay" in str(error) or "; instead: " in str(error) else "failed"


def _reason(error: BaseException | None) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] if error is not None else []
    return f"{type(error).__name__}: {' | '.join(lines[:4])}"[:300] if error is not None else ""
