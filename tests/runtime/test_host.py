"""What a library asks of the processor that it runs on."""

import os
from itertools import pairwise

import numpy as np
import pytest
import tvm
from onnx import helper

from tests.onnx_models import make_model
from tvm_neuron import BuildOptions, relay, runtime
from tvm_neuron.errors import HostError, OptionError
from tvm_neuron.runtime import host

MODEL = make_model([helper.make_node("Exp", ["x"], ["y"], name="exp")], {"x": [4, 5]}, ["y"])


def test_levels_hold_each_other() -> None:
    needed = list(host.LEVELS.values())
    assert all(lower < higher for lower, higher in pairwise(needed))
    assert host.machine_level() in host.LEVELS
    host.check_level(host.machine_level())


def test_a_library_for_this_machine() -> None:
    mod, params = relay.frontend.from_onnx(MODEL)
    library = relay.build(mod, params=params, options=BuildOptions(on_cpu=("*",), host_cpu="native"))
    assert runtime.manifest(library)["options"]["host_cpu"] == host.machine_level()
    x = np.random.default_rng(0).standard_normal((4, 5), dtype=np.float32)
    executor = library["default"]()
    executor.run(x=x)
    np.testing.assert_allclose(executor.get_output(0).numpy(), np.exp(x.astype(float)), rtol=3e-7)


def test_a_processor_that_lacks_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    mod, params = relay.frontend.from_onnx(MODEL)
    library = relay.build(mod, params=params, options=BuildOptions(on_cpu=("*",), host_cpu="x86-64-v3"))
    monkeypatch.setattr(host, "_flags", lambda: host.LEVELS["x86-64-v3"] - {"avx2"})
    with pytest.raises(HostError, match=r"host_cpu='x86-64-v3'.* lacks avx2: compile them with host_cpu='x86-64-v2'"):
        library["default"](tvm.cpu())


def test_a_level_that_is_none() -> None:
    with pytest.raises(OptionError, match=r"host_cpu is 'x86-64-v9'; take one of baseline, .*, native"):
        BuildOptions(host_cpu="x86-64-v9")


def test_threads_for_all_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TVM_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(host, "_cores", lambda: 3)
    host.use_all_cores()
    assert os.environ["TVM_NUM_THREADS"] == "3"
    monkeypatch.setenv("TVM_NUM_THREADS", "2")
    host.use_all_cores()
    assert os.environ["TVM_NUM_THREADS"] == "2"
    monkeypatch.delenv("TVM_NUM_THREADS")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    host.use_all_cores()
    assert "TVM_NUM_THREADS" not in os.environ
