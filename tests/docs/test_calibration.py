"""The model beside what AWS measured: within 15 %, and below what was measured with a host around it."""

import pytest

from benchmarks.calibration import Calibrated, fits, measure
from benchmarks.plain import Plain, in_turn_us
from tests.isa.examples import dram, psum, sbuf
from tvm_neuron.hw import load_device
from tvm_neuron.isa import Activation, DmaCopy, Matmul

PUBLISHED = {
    ("trn1", "Mamba kernel, version 1"): 2340,
    ("trn1", "Mamba kernel, version 1, 256 channels"): 172.93,
    ("trn1", "Mamba kernel: Vector engine active"): 92.16,
    ("inf1", "ResNet-50, batch 1, on the device"): 2709.6,
    ("inf1", "BERT-base, 128 tokens, batch 1"): 7900,
    ("inf1", "BERT-base, 128 tokens, batch 3"): 10500,
    ("inf2", "BERT-base, 128 tokens, batch 1"): 1050,
}
END_TO_END = {("inf2", "ResNet-50, batch 1, end to end"): 830}  # with a host stack that isn't modelled
Rows = dict[tuple[str, str], Calibrated]


@pytest.fixture(scope="module")
def rows() -> Rows:
    return {(row.chip, row.what): row for row in measure()}


def test_nothing_published_is_left_out(rows: Rows) -> None:
    assert set(rows) == {*PUBLISHED, *END_TO_END}


@pytest.mark.parametrize("row", PUBLISHED)
def test_within_fifteen_percent(rows: Rows, row: tuple[str, str]) -> None:
    assert abs(rows[row].modelled / PUBLISHED[row] - 1) <= 0.15
    assert rows[row].row().is_met


@pytest.mark.parametrize("row", END_TO_END)
def test_end_to_end_is_a_bound(rows: Rows, row: tuple[str, str]) -> None:
    assert rows[row].modelled <= END_TO_END[row]
    assert rows[row].is_upper_bound


def test_what_is_taken_lies_where_measurements_put_it() -> None:
    for fit in fits():
        assert fit.low <= fit.taken <= fit.high, fit


def test_a_row_says_when_it_is_not_kept() -> None:
    assert not Calibrated("inf1", "net", "us", 100.0, 116.0, "clock").row().is_met
    assert not Calibrated("inf1", "net", "us", 100.0, 101.0, "clock", is_upper_bound=True).row().is_met


def test_an_operator_takes_its_busiest_engine_and_every_latency_once() -> None:
    device = load_device("inf1")  # PE, ACT and DMA have cycles of 1 ns
    load, relu = DmaCopy(sbuf(4, 4), dram(4, 4), 0), Activation(sbuf(4, 4), psum(4, 4), 1.0, 0.0, "relu")
    product = (30, Matmul(sbuf(4, 4), sbuf(4, 4), psum(4, 4), ()))
    expected_ns = [load.cost(device).busy_cycles + 1300, 2 * (64 + 110 + 100) + 100 + 100]
    assert in_turn_us(iter([[(1, load)], [product, (2, relu)]]), device) == pytest.approx(sum(expected_ns) / 1e3)


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
def test_plain_operators_do_all_their_products(chip: str) -> None:
    plain = Plain(load_device(chip))
    macs = {
        768 * 3072 * 128: plain.dense(768, 3072, 128),
        64 * 256 * 56 * 56: plain.convolution(64, 256, 1, 56),
        3 * 64 * 49 * 112 * 112: plain.convolution(3, 64, 7, 112),
        12 * 128 * 128 * 64: plain.scores(12, 128, 64),
    }
    for expected, work in macs.items():
        assert sum(times * instruction.cost(plain.device).macs for times, instruction in work) == expected
