"""The clock and a bound made by hand agree in direction when a device or a batch changes, on random small networks.

The bound of a network takes no scheduler: bytes of weights, inputs and outputs over the bandwidth, products at the
array's peak, whichever is more.
"""

import json
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from math import prod
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.codegen.random_networks import RandomNetwork
from tvm_neuron import neff, relay, runtime
from tvm_neuron.hw import Device, load_device
from tvm_neuron.hw.load import device_to_dict
from tvm_neuron.neff import Neff
from tvm_neuron.sim import time_program

CHIPS = ("inf1", "inf2")
SPEEDS = ("pe_clock_hz", "act_clock_hz", "pool_clock_hz", "dram_bytes_per_second", "dma_engines")
WAITS = (
    "instruction_latency_cycles", "dma_start_ns", "dma_descriptor_ns", "elementwise_min_cycles", "matmul_min_cycles",
)  # fmt: skip
# Transfers take the DRAM in the order in which they get ready. A change can turn two around, and what waits for the
# second then waits for the first as well (see test_what_a_quicker_engine_can_cost). In 420 networks with 30 changes
# each it never happened, so this is room for what was not seen, not for what was.
REORDERED = 1.01
QUICK = settings(max_examples=12, deadline=None, derandomize=True)


@lru_cache(maxsize=4)
def compiled(seed: int, chip: str, batch: int | None = None, folder: Path | None = None) -> tuple[Neff, ...]:
    """A network's parts; with a folder, on a device file of it."""
    mod, params = relay.frontend.from_onnx(RandomNetwork(seed, operators=4, batch=batch).model())
    target: Any = {"tag": "neuron", "device": str(folder / f"{chip}.json")} if folder else f"neuron/{chip}"
    return tuple(neff.read(data) for data in runtime.neffs(relay.build(mod, target=target, params=params)).values())


def time_ps(parts: tuple[Neff, ...], **changes: int) -> int:
    """Of a run, on the device with some numbers changed."""
    return sum(time_program(part.program, replace(part.device, **changes)).total_ps for part in parts)


def bound_ps(parts: tuple[Neff, ...], **changes: int) -> float:
    """What no schedule can beat."""
    return sum(_bound_ps(part, replace(part.device, **changes)) for part in parts)


def _bound_ps(part: Neff, device: Device) -> float:
    moved = sum(tensor.size_bytes for tensor in part.program.tensors if tensor.kind != "scratch")
    macs = sum(prod(counts) * instruction.cost(device).macs for counts, instruction in part.program.instructions())
    return max(moved / device.dram_bytes_per_second, macs / device.peak_macs_per_second) * 1e12


def padding_ps(before: tuple[Neff, ...], after: tuple[Neff, ...]) -> float:
    """What the weights that `after` has more take of the DRAM."""
    return max(0, _weight_bytes(after) - _weight_bytes(before)) / after[0].device.dram_bytes_per_second * 1e12


def _weight_bytes(parts: tuple[Neff, ...]) -> int:
    return sum(tensor.size_bytes for part in parts for tensor in part.program.tensors if tensor.kind == "weight")


networks = st.tuples(st.integers(0, 1999), st.sampled_from(CHIPS))


@st.composite
def devices(draw: st.DrawFn) -> dict[str, int]:
    """Numbers of a device of its own: each a multiple or a part of a chip's."""
    chip = load_device(draw(st.sampled_from(CHIPS)))
    changed = draw(st.sets(st.sampled_from((*SPEEDS, *WAITS)), max_size=6))
    return {name: max(1, int(getattr(chip, name) * draw(st.sampled_from([0.25, 0.5, 1, 2, 5])))) for name in changed}


@pytest.mark.slow
@given(networks, devices())
@QUICK
def test_no_network_is_quicker_than_its_bound(network: tuple[int, str], device: dict[str, int]) -> None:
    parts = compiled(*network)
    rounding = sum(time_program(part.program, part.device).instructions for part in parts)  # half a ps each at most
    assert time_ps(parts, **device) >= bound_ps(parts, **device) - rounding


@pytest.mark.slow
@given(networks, devices(), st.sampled_from((*SPEEDS, *WAITS)), st.sampled_from([2, 3]))
@QUICK
def test_a_number_of_the_device_changed(network: tuple[int, str], device: dict[str, int], name: str, by: int) -> None:
    """Quicker engines or a wider DRAM never cost time, longer waits never save any, and neither by more than `by`."""
    parts = compiled(*network)
    usual = {field: getattr(parts[0].device, field) for field in (name, *device)} | device
    other = usual | {name: usual[name] * by}
    before, after = time_ps(parts, **usual), time_ps(parts, **other)
    fast, slow = (after, before) if name in SPEEDS else (before, after)
    assert fast <= slow * REORDERED
    assert slow <= fast * by * REORDERED
    bound_before, bound_after = bound_ps(parts, **usual), bound_ps(parts, **other)
    assert (bound_after <= bound_before) if name in SPEEDS else (bound_after == bound_before)


@pytest.mark.slow
@given(networks)
@QUICK
def test_a_network_that_waits_for_the_dram_feels_its_bandwidth(network: tuple[int, str]) -> None:
    """With a fraction of the bandwidth all do, and half of that doubles bound and time alike."""
    parts = compiled(*network)
    slow = parts[0].device.dram_bytes_per_second // 10_000
    ratio = time_ps(parts, dram_bytes_per_second=slow // 2) / time_ps(parts, dram_bytes_per_second=slow)
    bounds = bound_ps(parts, dram_bytes_per_second=slow // 2) / bound_ps(parts, dram_bytes_per_second=slow)
    assert ratio == pytest.approx(2, rel=0.1)
    assert bounds == pytest.approx(2, rel=0.01)


@pytest.mark.slow
def test_an_array_of_twice_the_columns(tmp_path: Path) -> None:
    """Compiled again for it, networks take less time: not each, for moves are chosen by a price, not by the clock.

    Of 387 pairs 6 took over 2 % more, one 35 %, beside what weights take that pad the tiles of a wider array.
    """
    ratios = []
    for seed, chip in [(0, "inf1"), (18, "inf1"), *((seed, CHIPS[seed % 2]) for seed in range(1000, 1060))]:
        parts = []
        for columns in (64, 128):
            raw: dict[str, Any] = device_to_dict(load_device(chip))
            raw |= {"name": f"{chip}_{columns}", "pe_columns": {"value": columns, "source": "this test"}}
            (tmp_path / f"{chip}_{columns}.json").write_text(json.dumps(raw))
            parts.append(compiled(seed, f"{chip}_{columns}", None, tmp_path))
        narrow, wide = parts
        if narrow:  # else nothing of it runs on the core
            ratios.append((time_ps(wide) - padding_ps(narrow, wide)) / time_ps(narrow))
    assert len(ratios) > 20
    assert geometric_mean(ratios) < 1
    assert max(ratios) < 1.4


@pytest.mark.slow
@given(networks)
@settings(QUICK, max_examples=6)
def test_a_batch_of_twice_the_size(network: tuple[int, str]) -> None:
    """No quicker, and no slower than two runs. (From 1 to 2 layouts change: once 2 were quicker by 40 %.)"""
    runs = [compiled(*network, batch) for batch in (2, 4, 8)]
    for one, two in pairwise(runs):
        assert time_ps(one) <= time_ps(two) <= 2 * time_ps(one)
        assert bound_ps(one) <= bound_ps(two)
