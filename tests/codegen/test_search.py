"""-O levels and the time budget: what is tried, what is kept, when it ends."""

from dataclasses import replace

import pytest

from tests.codegen.graphs import graph_of
from tests.stages.networks import residual_network
from tvm_neuron.codegen import function, search
from tvm_neuron.codegen.function import compile_graph
from tvm_neuron.codegen.options import BuildOptions
from tvm_neuron.codegen.search import fitting, quickest
from tvm_neuron.codegen.simplify import kernels_by_layout
from tvm_neuron.codegen.stage import Stage
from tvm_neuron.codegen.tuning import CANDIDATES, USUAL, Tuning
from tvm_neuron.errors import CompileError, OptionError
from tvm_neuron.hw import Device, load_device
from tvm_neuron.neff import Pipeline
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.sim import time_program


def tunings_tried(monkeypatch: pytest.MonkeyPatch, cost: dict[Tuning, int], options: BuildOptions) -> list[Tuning]:
    """What a search tries where a tuning's program takes what `cost` says (1000 if nothing); the result is the best."""
    tried: list[Tuning] = []

    def make(wanted: BuildOptions) -> Tuning:
        tried.append(wanted.tuning)
        if cost.get(wanted.tuning, 1000) < 0:
            raise CompileError("no room")
        return wanted.tuning

    monkeypatch.setattr(search, "total_ps", lambda tuning: cost.get(tuning, 1000))
    found, tuning = quickest(make, "neuron_0", options)  # type: ignore[arg-type]
    assert found == tuning  # type: ignore[comparison-overlap]
    possible = [tuning for tuning in tried if cost.get(tuning, 1000) > 0]
    assert found == min(possible, key=lambda tuning: cost.get(tuning, 1000))
    return tried


def test_ways_that_do_not_fit_are_left_out() -> None:
    def make(number: int) -> int:
        if number % 2:
            raise CompileError(f"{number} does not fit")
        return -number

    assert fitting(make, [1, 2, 3, 4]) == [-2, -4]
    with pytest.raises(CompileError, match="3 does"):
        fitting(make, [3, 5])


def test_a_layout_that_does_not_fit_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Stage] = []

    def twice(*arguments: object) -> list[tuple[list[Kernel], dict[Tensor, int]]]:
        return 2 * kernels_by_layout(*arguments)  # type: ignore[arg-type]

    def cut_to_fit(stage: Stage, device: Device) -> Stage:
        made.append(stage)
        if len(made) == 2:
            raise CompileError("it needs more memory")
        return stage

    monkeypatch.setattr(function, "kernels_by_layout", twice)
    monkeypatch.setattr(function, "cut_to_fit", cut_to_fit)
    for cores in (1, 2):
        made.clear()
        options = BuildOptions(pipeline_cores=cores)
        assert (
            len(function.compile_pipeline(graph_of(residual_network()), "net", load_device("inf1"), options).cores)
            == cores
        )
        assert len(made) == 2


def test_every_field_is_tried_with_the_best_of_those_before(monkeypatch: pytest.MonkeyPatch) -> None:
    good, better = Tuning(weights_share=6), Tuning(weights_share=6, strip_share=8)
    tried = tunings_tried(monkeypatch, {good: 900, better: 800, Tuning(weights_share=4): -1}, BuildOptions(optlevel=3))
    weights, strips = CANDIDATES["weights_share"], CANDIDATES["strip_share"]
    assert tried == [USUAL, *(Tuning(weights_share=share) for share in weights[1:]),
                     *(replace(good, strip_share=share) for share in strips[1:])]  # fmt: skip


def test_without_time_the_first_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    options = BuildOptions(optlevel=3, time_budget_seconds=1e-6).begun()
    assert options.begun() is options
    assert not options.has_time()
    assert tunings_tried(monkeypatch, {}, options) == [USUAL]


def test_a_searched_program_is_no_slower() -> None:
    device = load_device("inf1")

    def make(options: BuildOptions) -> Pipeline:
        return Pipeline.of(compile_graph(graph_of(residual_network()), "net", device, options))

    options = BuildOptions(optlevel=3)
    (found,), (usual,) = quickest(make, "net", options)[0].cores, make(options).cores
    assert time_program(found.program, device).total_ps <= time_program(usual.program, device).total_ps
    assert found.options["optlevel"] == 3


def test_tunings_make_other_programs() -> None:
    device = replace(load_device("inf1"), sbuf_bytes_per_partition=28 * 1024)
    made = {
        share: compile_graph(graph_of(residual_network()), "net", device, BuildOptions(tuning=Tuning(share)))
        for share in (2, 6)
    }
    assert made[2].memory["activations"] < made[6].memory["activations"]
    assert made[6].options["tuning"] == {"weights_share": 6, "strip_share": 5}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"optlevel": 4}, "optlevel is 4; take one of 1, 2, 3"),
        ({"time_budget_seconds": 0.0}, "time_budget_seconds is 0.0; it must be more than 0"),
    ],
)
def test_wishes_that_make_no_sense(wrong: dict, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        BuildOptions(**wrong)
