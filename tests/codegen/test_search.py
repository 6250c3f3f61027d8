"""-O levels and the time budget: what is tried, what is kept, when it ends."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tvm_neuron
from tests.codegen.graphs import graph_of
from tests.stages.networks import residual_network
from tvm_neuron import jobs, relay
from tvm_neuron.codegen import function
from tvm_neuron.codegen.at_once import in_processes
from tvm_neuron.codegen.function import compile_graph
from tvm_neuron.codegen.options import BuildOptions
from tvm_neuron.codegen.search import AtOnce, Found, fitting, nowhere, quickest
from tvm_neuron.codegen.simplify import kernels_by_layout
from tvm_neuron.codegen.stage import Stage
from tvm_neuron.codegen.tuning import CANDIDATES, USUAL, Tuning
from tvm_neuron.errors import CompileError, NeuronWarning, OptionError
from tvm_neuron.hw import Device, load_device
from tvm_neuron.schedule.graph import Graph
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.tensor import Tensor

Elsewhere = Callable[[BuildOptions, float], AbstractContextManager[AtOnce]]


def tunings_tried(cost: dict[Tuning, int], options: BuildOptions, elsewhere: Elsewhere = nowhere) -> list[Tuning]:
    """What a search tries here if a tuning's program takes what `cost` says (1000 if nothing), the best at the end."""
    tried: list[Tuning] = []

    def make(wanted: BuildOptions) -> Found:
        tried.append(wanted.tuning)
        return found_at(cost, wanted.tuning)

    found, tuning = quickest(make, "neuron_0", options, elsewhere)
    assert found == found_at(cost, tuning)
    return [*tried, tuning]


def found_at(cost: dict[Tuning, int], tuning: Tuning) -> Found:
    if cost.get(tuning, 1000) < 0:
        raise CompileError("no room")
    return Found(repr(tuning).encode(), cost.get(tuning, 1000))


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
        return 2 * kernels_by_layout(*arguments)[:1]  # type: ignore[arg-type]

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


def test_every_field_is_tried_with_the_best_of_those_before() -> None:
    good, better = Tuning(weights_share=6), Tuning(weights_share=6, strip_share=8)
    tried = tunings_tried({good: 900, better: 800, Tuning(weights_share=4): -1}, BuildOptions(optlevel=3))
    weights, strips = CANDIDATES["weights_share"], CANDIDATES["strip_share"]
    assert tried == [USUAL, *(Tuning(weights_share=share) for share in weights[1:]),
                     *(replace(good, strip_share=share) for share in strips[1:]), better]  # fmt: skip


@given(st.data())
def test_it_is_the_same_wherever_programs_are_made(data: st.DataObject) -> None:
    every = [Tuning(weights, strips) for weights in CANDIDATES["weights_share"] for strips in CANDIDATES["strip_share"]]
    costs = st.sampled_from((-1, 800, 900, 1000))
    cost = {tuning: data.draw(costs) for tuning in every if tuning != USUAL}
    sent: list[Tuning] = []

    @contextmanager
    def elsewhere(_options: BuildOptions, _seconds: float) -> Iterator[AtOnce]:
        def at_once(wanted: Sequence[BuildOptions]) -> dict[Tuning, Found]:
            fitting = [each.tuning for each in wanted if cost.get(each.tuning, 0) > 0]
            made = data.draw(st.permutations(fitting))[: data.draw(st.integers(0, len(fitting)))]
            sent.extend(made)
            return {tuning: found_at(cost, tuning) for tuning in made}

        yield at_once

    options = BuildOptions(optlevel=3)
    *tried, best = tunings_tried(cost, options)
    *tried_here, found = tunings_tried(cost, options, elsewhere)
    assert found == best
    assert sorted(map(str, (*tried_here, *sent))) == sorted(map(str, tried))
    assert cost.get(best, 1000) == min(cost.get(tuning, 1000) for tuning in tried if cost.get(tuning, 1000) > 0)


def no_processes(_processes: int) -> AbstractContextManager[None]:
    raise RuntimeError("no port is free\nat all")


def test_without_processes_it_goes_on_here_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = partial(in_processes, lambda _graph, options: found_at({}, options.tuning), lambda: Graph([], []))
    monkeypatch.setattr(jobs, "connected", no_processes)
    with pytest.warns(NeuronWarning, match="one after the other, .* of Ray fail: RuntimeError: no port is free$"):
        tried = tunings_tried({}, BuildOptions(optlevel=3, processes=2), elsewhere)
    assert len(tried) == 7
    for processes in (None, 1):  # programs that take no time, and who wants no processes
        assert tunings_tried({}, BuildOptions(optlevel=3, processes=processes), elsewhere) == tried


def test_processes_that_are_asked_for_need_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    elsewhere = partial(in_processes, lambda _graph, options: found_at({}, options.tuning), lambda: Graph([], []))
    with pytest.raises(OptionError, match=r"processes needs the package ray: pip install 'tvm-neuron\[sweep\]'$"):
        tunings_tried({}, BuildOptions(optlevel=3, processes=2), elsewhere)


def test_without_time_the_first_is_taken() -> None:
    options = BuildOptions(optlevel=3, time_budget_seconds=1e-6).begun()
    assert options.begun() is options
    assert not options.has_time()
    assert tunings_tried({}, options) == [USUAL, USUAL]


@pytest.mark.slow
def test_a_searched_program_is_no_slower() -> None:
    model = residual_network()
    mod, params = relay.frontend.from_onnx(model)
    found, usual = (
        tvm_neuron.report(relay.build(mod, params=params, options=BuildOptions(optlevel=level))) for level in (3, 2)
    )
    assert found.latency_us <= usual.latency_us


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
        ({"processes": 0}, "processes is 0; it must be at least 1"),
        ({"minimum_segment_size": -3}, "minimum_segment_size is -3; it must be at least 1"),
        ({"time_budget_seconds": 0.0}, "time_budget_seconds is 0.0; it must be more than 0"),
        ({"on_cpu": "Relu"}, "on_cpu is 'Relu'; it must be several patterns"),
        ({"pipeline_cores": 2.5}, "pipeline_cores is 2.5; it must be a whole number"),
    ],
)
def test_wishes_that_make_no_sense(wrong: dict, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        BuildOptions(**wrong)


def test_options_are_no_dictionary() -> None:
    with pytest.raises(OptionError, match=r"options are \{'optlevel': 1\}; they must be tvm_neuron.BuildOptions"):
        relay.build(relay.Function([], relay.const(1.0)), options={"optlevel": 1})  # type: ignore[arg-type]
