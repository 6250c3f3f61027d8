"""CPU parts and Neuron parts of consecutive requests of one model run at the same time."""

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tvm
import tvm_ffi
from onnx import helper

import tvm_neuron
from tests.onnx_models import make_model
from tvm_neuron import relay
from tvm_neuron.runtime.program import LoadedProgram
from tvm_neuron.runtime.service import Service

RNG = np.random.default_rng(0)
FIRST, SECOND = (RNG.standard_normal((256, 256)).astype(np.float32) for _ in range(2))


class Meeting:
    """The core's work on the first request and the CPU's on the second wait for each other."""

    def __init__(self) -> None:
        self.barrier = threading.Barrier(2, timeout=60)
        self.turns = {"cpu": 0, "core": 0}
        self.met = 0

    def enter(self, what: str) -> None:
        self.turns[what] += 1
        if (what, self.turns[what]) in (("core", 1), ("cpu", 2)):
            self.barrier.wait()  # raises BrokenBarrierError if the other doesn't begin meanwhile
            self.met += 1


@pytest.fixture
def meeting(monkeypatch: pytest.MonkeyPatch) -> Iterator[Meeting]:
    made, on_core = Meeting(), LoadedProgram.__call__
    on_cpu = tvm_ffi.get_global_func("tvm_neuron.runtime.matmul")

    def matmul(*tensors: tvm.runtime.Tensor) -> None:
        made.enter("cpu")
        on_cpu(*tensors)

    def call(program: LoadedProgram, *tensors: tvm.runtime.Tensor) -> None:
        made.enter("core")
        on_core(program, *tensors)

    monkeypatch.setattr(LoadedProgram, "__call__", call)
    tvm_ffi.register_global_func("tvm_neuron.runtime.matmul", matmul, override=True)
    yield made
    tvm_ffi.register_global_func("tvm_neuron.runtime.matmul", on_cpu, override=True)


def built() -> Any:
    """y = (x @ first) @ second, the first product on the CPU, large enough for BLAS."""
    nodes = [
        helper.make_node("MatMul", ["x", "first"], ["h"], "first"),
        helper.make_node("MatMul", ["h", "second"], ["y"], "second"),
    ]
    model = make_model(nodes, {"x": [64, 256]}, ["y"], {"first": FIRST, "second": SECOND})
    mod, params = relay.frontend.from_onnx(model)
    return relay.build(mod, params=params, options=tvm_neuron.BuildOptions(on_cpu=("first",)))


def test_the_core_works_on_one_request_while_the_cpu_works_on_the_next(meeting: Meeting) -> None:
    inputs = [RNG.standard_normal((64, 256)).astype(np.float32) for _ in range(2)]
    with Service(total_cores=1, environment={}) as service:
        model = service.load(built())
        model.start()
        futures = [model.submit({"x": x}) for x in inputs]
        results = [future.result(120)["y"] for future in futures]
    assert meeting.met == 2
    for x, y in zip(inputs, results, strict=True):
        hidden = x.astype(np.float64) @ FIRST
        bound = 2.0**-7 * (np.abs(hidden) @ np.abs(SECOND))  # both operands of the second product are rounded to bf16
        assert (np.abs(y - hidden @ SECOND) <= bound).all()
