"""The named chips: every number says where it is from, and one without a source says what it is taken for."""

import re
from dataclasses import replace

import pytest

from tvm_neuron.errors import DeviceError
from tvm_neuron.hw import CHIPS, Device, load_device

KINDS = {
    "documented": r"AWS documentation\b|AWS public driver\b|log of AWS's compiler\b",
    "fit": r"fit(:| to) .{10,}",
    "parameter": r"parameter: .{20,}",
}


def kind(source: str) -> str | None:
    """Which class of source it is."""
    return next((name for name, pattern in KINDS.items() if re.match(pattern, source)), None)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("number", Device.numbers())
def test_every_number_has_a_class_of_source(chip: str, number: str) -> None:
    assert kind(load_device(chip).sources[number]), load_device(chip).sources[number]


def test_what_times_a_program_on_neuroncore_v2_is_published() -> None:
    """What costs read; what is left as a parameter there is the host's."""
    for chip in ("inf2", "trn1"):
        sources = load_device(chip).sources
        assumed = {number for number in Device.numbers() if kind(sources[number]) == "parameter"}
        assert assumed == {"host_call_ns", "host_operations_per_second"}


def test_what_is_not_published_of_neuroncore_v3_is_that_of_v2_and_says_so() -> None:
    trn2, trn1 = load_device("trn2"), load_device("trn1")
    alike = [number for number in Device.numbers() if "as on NeuronCore-v2" in trn2.sources[number]]
    assert len(alike) > 5
    for number in set(alike) - {"dma_indirect_ns"}:  # as many cycles, of another clock
        assert getattr(trn2, number) == getattr(trn1, number), number
    assert trn2.peak_macs_per_second * 2 == pytest.approx(79e12, rel=0.01)
    assert trn2.sbuf_bytes == 28 << 20


def test_neuroncore_v1_is_taken_alike_where_nothing_is_published() -> None:
    inf1, inf2 = load_device("inf1"), load_device("inf2")
    alike = [number for number in Device.numbers() if "as on NeuronCore-v2" in inf1.sources[number]]
    assert len(alike) > 5
    for number in alike:
        assert getattr(inf1, number) == getattr(inf2, number), number


@pytest.mark.parametrize("value", [0, -1, 2**48 + 1, 1.5, True, "1", None])
def test_a_number_that_makes_no_sense(value: object) -> None:
    device = load_device("inf1")
    with pytest.raises(DeviceError, match=r"pe_rows is .*; it must be a whole number from 1 to 281474976710656$"):
        replace(device, pe_rows=value)
