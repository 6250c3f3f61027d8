"""What docs/nki.md says of instructions that the compiler leaves alone."""

import pytest

from benchmarks.instruction_choices import choices
from tvm_neuron.hw import CHIPS, load_device


@pytest.mark.parametrize("chip", CHIPS)
def test_which_way_is_the_shortest(chip: str) -> None:
    """Vector divides at least as quickly as it makes reciprocals; only trn2's DMA turns blocks at a rate."""
    for choice in choices(load_device(chip)):
        ways = choice.ways_ns
        if choice.what == "transpose":
            assert (ways["DMA"] < ways["array"]) == (chip == "trn2")
        else:
            assert ways["activation"] <= ways["division"] <= ways["reciprocal"]
