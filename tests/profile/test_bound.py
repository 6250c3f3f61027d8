"""The bound: engines' least work and transfers' start, counted here by hand; never more than the modelled time."""

from itertools import product

import numpy as np
import onnx
import pytest
from onnx import helper

import tvm_neuron
from tests.onnx_models import make_model
from tvm_neuron import hw, relay
from tvm_neuron.codegen.least_time import shared_out
from tvm_neuron.profile import Report

CHIPS = ("inf1", "inf2")


def _report(model: onnx.ModelProto, chip: str) -> Report:
    mod, params = relay.frontend.from_onnx(model)
    return tvm_neuron.report(relay.build(mod, target=f"neuron/{chip}", params=params))


def _conv(channels: int, side: int, group: int) -> onnx.ModelProto:
    weights = np.random.default_rng(group).standard_normal((channels, channels // group, 3, 3)).astype(np.float32)
    node = helper.make_node("Conv", ["x", "w"], ["y"], group=group, pads=[1] * 4)
    return make_model([node], {"x": (1, channels, side, side)}, ["y"], {"w": weights})


@pytest.mark.parametrize("chip", CHIPS)
def test_a_tiny_model_takes_two_transfers_and_an_instruction(chip: str) -> None:
    device = hw.load_device(chip)
    report = _report(_conv(8, 4, 1), chip)
    fastest = max(device.act_clock_hz, device.pool_clock_hz)
    instruction = (device.elementwise_min_cycles + device.instruction_latency_cycles) / fastest
    assert report.bound_us == pytest.approx(2 * device.dma_start_ns / 1e3 + 1e6 * instruction)
    assert report.bound_us < report.latency_us < 3 * report.bound_us


@pytest.mark.parametrize("chip", CHIPS)
def test_of_a_large_convolution_it_is_nearly_the_roofline(chip: str) -> None:
    device = hw.load_device(chip)
    report = _report(_conv(256, 56, 1), chip)
    assert 0.95 * report.roofline_us < report.bound_us < report.roofline_us + 2 * device.dma_start_ns / 1e3


@pytest.mark.parametrize("chip", CHIPS)
def test_of_a_depthwise_convolution_engines_share_the_work(chip: str) -> None:
    channels, side = 256, 28
    device = hw.load_device(chip)
    report = _report(_conv(channels, side, channels), chip)
    results = channels * side**2
    columns = results / device.pe_columns / device.pe_clock_hz
    lanes = device.partitions * (device.act_clock_hz + device.pool_clock_hz)
    # of the results a share by the array, the others in nine cycles of a lane each
    share = 9 * results / lanes / (columns + 8 * results / lanes)
    moved_us = 4 * 2 * results / device.dram_bytes_per_second * 1e6
    by_engines = share * columns * 1e6
    psum = share * results / device.partitions / max(device.act_clock_hz, device.pool_clock_hz) * 1e6
    expected = max(2 * device.dma_start_ns / 1e3 + max(by_engines, psum), moved_us + device.dma_start_ns / 1e3)
    assert report.bound_us == pytest.approx(expected, rel=0.02)
    assert report.bound_us < report.latency_us


def test_shares_are_the_best_of_a_fine_grid() -> None:
    rng = np.random.default_rng(1)
    for _ in range(5):
        here, there = rng.uniform(0.1, 1, (2, 3, 4)) * (rng.uniform(size=(2, 3, 4)) < 0.6)
        fixed = rng.uniform(0, 0.2, 4)
        shares = np.array(list(product(np.linspace(0, 1, 41), repeat=3)))
        loads = shares @ here + (1 - shares) @ there + fixed
        best = loads.max(axis=1).min()
        assert 0.96 * best <= shared_out(here, there, fixed) <= best + 1e-9


def test_what_no_data_reach_waits_for_none() -> None:
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["": 21]>
        untouched (int32[5, 2, 3, 1] x) => (float16[5, 1, 3, 1] y)
        <int64 one = {1}, int64[2] starts = {-2, -3}, int64[2] ends = {2, 9}, int64[2] axes = {1, 2},
         int64[2] steps = {3, 1}, float16[1, 1, 1, 1] half = {14336}>
        { above = Trilu<upper: int = 1>(x, one)  first = Slice(above, starts, ends, axes, steps)
          float = Cast<to: int = 10>(first)  y = Sub(float, half) }""")
    report = _report(model, "inf2")
    assert report.bound_us < report.latency_us
