"""The model beside what AWS measured: within 15 %, and below what was measured with a host around it."""

import pytest

from benchmarks.calibration import CACHED_MB, NETWORKS, Calibrated, fits, kernel_rows, operators_in_turn_us
from tests.sim.small import dram, program, psum, sbuf
from tvm_neuron.hw import load_device
from tvm_neuron.isa import Activation, DmaCopy, Matmul
from tvm_neuron.program import Loop


@pytest.mark.parametrize("row", kernel_rows(), ids=lambda row: row.unit)
def test_the_kernel(row: Calibrated) -> None:
    assert abs(row.error) <= 0.15


def test_sbuf_of_inf1_holds_what_stayed_cached() -> None:
    assert CACHED_MB[0] * 1e6 <= load_device("inf1").sbuf_bytes < CACHED_MB[1] * 1e6


def test_an_operator_takes_its_busiest_engine_and_every_latency_once() -> None:
    device = load_device("inf1")  # PE, ACT and DMA have cycles of 1 ns
    matmul, relu = Matmul(sbuf(0), sbuf(0), psum(0), (), origin=1), Activation(sbuf(256), psum(0), 1.0, 0.0, "relu")
    body = program(DmaCopy(sbuf(0, 32), dram(0), 0), Loop(30, (matmul,)), relu, relu.replace(origin=1))
    load = DmaCopy(sbuf(0, 32), dram(0), 0).cost(device).busy_cycles
    expected_ns = (max(load, 64) + 1300 + 100) + (30 * 4 + 100 + 100)
    assert operators_in_turn_us(body, device) == pytest.approx(expected_ns / 1e3)


@pytest.mark.slow
def test_networks_and_what_they_say_of_the_chip() -> None:
    compiled = [(network, network.compile()) for network in NETWORKS]
    for network, neff in compiled:
        row = network.row(neff)
        assert row.error <= 0 if network.is_end_to_end else abs(row.error) <= 0.15, row
    for fit in fits(compiled):
        assert fit.low <= fit.taken <= fit.high, fit
