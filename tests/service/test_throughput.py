"""The throughput model against a simulation of the same queue, request by request."""

import heapq
import json
from pathlib import Path

import pytest
import tvm
from hypothesis import given, settings
from hypothesis import strategies as st

import tvm_neuron
from tests.cli.conftest import Cli, cli  # noqa: F401 (a fixture)
from tests.stages.networks import small_network
from tvm_neuron import relay
from tvm_neuron.build import BuildOptions
from tvm_neuron.errors import OptionError
from tvm_neuron.hw import load_device
from tvm_neuron.runtime import neffs
from tvm_neuron.runtime.throughput import Times, steady_state, throughput

DEVICE = load_device("inf1")


def simulated_rate(times: Times, link_us: float, other_us: float, cores: int, depth: int) -> float:
    """Requests per us of a closed queue, served in order of arrival by the link and then by the first free pipeline."""
    served, last, total = 0, 0.0, 400 * max(cores, depth)
    free_cores, link_free = [0.0] * (cores // times.pipeline_cores), 0.0
    arrivals = [0.0] * depth
    heapq.heapify(arrivals)
    ends = []
    while served < total:
        begin = max(heapq.heappop(arrivals), link_free)
        link_free = begin + link_us
        core = max(heapq.heappop(free_cores), link_free + other_us)
        heapq.heappush(free_cores, core + times.interval_us)
        last = core + times.latency_us
        ends.append(last)
        heapq.heappush(arrivals, last)
        served += 1
    half = total // 2
    return (total - half) / (ends[-1] - ends[half - 1])


@settings(max_examples=60, deadline=None)
@given(
    st.floats(20, 5000), st.integers(1, 5), st.integers(1000, 10_000_000), st.integers(1, 8), st.integers(1, 24),
    st.floats(0, 1000),
)  # fmt: skip
def test_as_the_queue_simulated(
    core_us: float, stages: int, carried: int, copies: int, depth: int, host_us: float
) -> None:
    times, cores = Times(core_us * stages, core_us, stages, host_us), stages * copies
    found = steady_state(DEVICE, times, carried, cores, depth, 1)
    link_us = 1e6 * carried / DEVICE.host_bytes_per_second
    other_us = DEVICE.host_call_ns / 1e3 + host_us
    rate = simulated_rate(times, link_us, other_us, cores, depth)
    # where the number of requests is no multiple of the cores they interleave: never more than the bound, and near it
    assert rate <= found.requests_per_second / 1e6 * 1.02
    assert rate >= found.requests_per_second / 1e6 * 0.7
    assert found.latency_us * found.requests_per_second / 1e6 == pytest.approx(depth)  # Little's law


def test_more_of_anything_is_never_worse(library: Path) -> None:
    loaded = tvm.runtime.load_module(str(library))
    rates = [throughput(loaded, cores, depth).items_per_second for cores, depth in [(1, 1), (1, 4), (4, 4), (4, 16)]]
    assert rates == sorted(rates)
    assert rates[0] < rates[-1]
    assert throughput(loaded, 1, 1).batch == 4
    with pytest.raises(OptionError, match="throughput of 0 cores and 1 requests: both must be at least 1"):
        throughput(loaded, 0, 1)
    with pytest.raises(OptionError, match=r"throughput with host_us -5.0: it is a time in microseconds, at least 0"):
        throughput(loaded, host_us=-5.0)


def test_a_pipeline_takes_the_next_request_before_it_is_done_with_the_last() -> None:
    mod, params = relay.frontend.from_onnx(small_network(channels=64))
    library = relay.build(mod, target="neuron", params=params, options=BuildOptions(pipeline_cores=3))
    (use,) = tvm_neuron.report(library).pipelines
    full = throughput(library)
    assert (full.cores, full.pipeline_cores, full.queue_depth) == (3, 3, 6)
    alone, many, two = throughput(library, 3, 1), throughput(library, 3, 50), throughput(library, 6, 100)
    assert alone.requests_per_second < 1e6 / use.latency_us
    assert many.requests_per_second == pytest.approx(use.inputs_per_second)
    assert two.requests_per_second == pytest.approx(2 * use.inputs_per_second)
    assert many.requests_per_second > 1e6 / use.latency_us
    with pytest.raises(OptionError, match=r"of 4 cores: .* as a pipeline over 3 .* multiple of 3: ask for one, or"):
        throughput(library, 4)


def test_the_cores_of_a_chip_share_its_dram() -> None:
    rates = [
        steady_state(DEVICE, Times(100, 100, shared_us=us), 0, cores, 1000, 1)
        for cores, us in ((1, 0), (2, 100), (4, 200), (8, 200))
    ]
    assert [round(rate.requests_per_second) for rate in rates] == [10_000, 20_000, 20_000, 40_000]
    assert [rate.bound for rate in rates][::2] == ["cores", "DRAM"]


def test_on_the_command_line(cli: Cli, library: Path) -> None:  # noqa: F811
    code, said, _ = cli("throughput", library, "--cores", 1, 2, "--queue-depth", 4, "--json")
    assert code == 0
    assert [(row["cores"], row["queue_depth"]) for row in json.loads(said)] == [(1, 4), (2, 4)]
    assert "limited" in cli("throughput", library)[1]


def test_of_a_program_alone(cli: Cli, library: Path, tmp_path: Path) -> None:  # noqa: F811
    """The same as of the library that holds nothing else."""
    (data,) = neffs(tvm.runtime.load_module(str(library))).values()
    (tmp_path / "net.neff").write_bytes(data)
    of_both = json.loads(cli("throughput", library, tmp_path / "net.neff", "--cores", 2, "--json")[1])
    assert len({json.dumps({**row, "file": ""}) for row in of_both}) == 1
