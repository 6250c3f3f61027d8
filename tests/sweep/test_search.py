"""-O3 in processes of Ray: the bytes are the same as without, and a worker that dies loses nothing."""

import os
import signal
from dataclasses import replace
from functools import partial
from typing import Any

import onnx
import pytest

from tests.codegen.transformers import Encoder
from tests.stages.networks import residual_network, small_network
from tvm_neuron import jobs, relay, runtime
from tvm_neuron.codegen.at_once import in_processes
from tvm_neuron.codegen.options import BuildOptions
from tvm_neuron.codegen.search import Found, quickest
from tvm_neuron.codegen.tuning import CANDIDATES, USUAL, Tuning
from tvm_neuron.schedule.graph import Graph
from tvm_neuron.schedule.tensor import Tensor

pytestmark = [pytest.mark.sweep, pytest.mark.usefixtures("processes")]
DEADLY, DEFECTIVE, BEST = Tuning(weights_share=4), Tuning(weights_share=6), Tuning(weights_share=2, strip_share=8)


def cost(tuning: Tuning) -> int:
    return 100 * tuning.weights_share - tuning.strip_share


def task(graph: Graph, options: BuildOptions) -> Found:
    """What the graph's first input is called, but for one tuning, of which it dies, and another, for which it fails."""
    if options.tuning == DEADLY:
        os.kill(os.getpid(), signal.SIGKILL)
    assert options.tuning != DEFECTIVE
    return Found(graph.inputs[0].name.encode(), cost(options.tuning))


@pytest.mark.parametrize(
    ("model", "cores"),
    [
        (small_network(), 1),
        pytest.param(residual_network(), 1, marks=pytest.mark.many),
        (Encoder(hidden=128, heads=2, rows=64, layers=2).model(), 2),
    ],
)
def test_the_bytes_are_the_same(model: onnx.ModelProto, cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    results = jobs.results

    def recorded(*arguments: Any, **more: Any) -> Any:
        for job, result in results(*arguments, **more):
            made.append(result)
            yield job, result

    monkeypatch.setattr(jobs, "results", recorded)
    mod, params = relay.frontend.from_onnx(model)
    options = BuildOptions(optlevel=3, pipeline_cores=cores, device="neuron/inf2")
    here, at_once = (
        runtime.neffs(relay.build(mod, params=params, options=replace(options, processes=processes)))
        for processes in (1, 2)
    )
    assert here == at_once
    assert len(made) == sum(len(values) - 1 for values in CANDIDATES.values()) * len(here)
    assert all(isinstance(each, Found) for each in made)


def test_what_processes_fail_to_make_is_made_here() -> None:
    made: list[Tuning] = []

    def make(options: BuildOptions) -> Found:
        made.append(options.tuning)
        return Found(b"here", cost(options.tuning))

    elsewhere = partial(in_processes, task, lambda: Graph([Tensor("there", (1,), "float32", "input")], []))
    found, tuning = quickest(make, "neuron_0", BuildOptions(optlevel=3, processes=2), elsewhere)
    assert made == [USUAL, DEADLY, DEFECTIVE]
    assert found == Found(b"there", cost(BEST))
    assert tuning == BEST
