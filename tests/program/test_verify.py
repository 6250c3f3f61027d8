"""What a program may not ask for: numbers that no memory has, and more DRAM than there is."""

import re
from dataclasses import replace

import pytest

from tests.sim.small import TENSORS, dram, load, program, sbuf, store
from tvm_neuron.errors import ProgramError
from tvm_neuron.hw import load_device
from tvm_neuron.isa import DmaCopy, Wait, affine
from tvm_neuron.isa.limits import check_tile
from tvm_neuron.program import DramTensor, Loop
from tvm_neuron.program.form import check_form
from tvm_neuron.program.verify import verify
from tvm_neuron.sim import Machine

DEVICE = load_device("inf1")
HUGE = 2**48 + 1


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (DmaCopy(sbuf(HUGE, 32), dram(0), 0), f"target: holds {HUGE}; at most {2**48}"),
        (Loop(2, (DmaCopy(sbuf(affine(0, [(0, -HUGE)]), 32), dram(0), 0),)), f"target: holds {-HUGE}; at most"),
        (DmaCopy(sbuf(affine(0, phase=HUGE, wrap=8), 32), dram(0), 0), f"target: holds {HUGE}; at most"),
        (DmaCopy(sbuf(0, HUGE), dram(0), 0), f"target: holds {HUGE}; at most"),
        (DmaCopy(sbuf(0, 32, partitions=HUGE), dram(0), 0), f"target: holds {HUGE}; at most"),
        (load().replace(waits=(Wait("pe", affine(1), 2**32 + 1),)), f"wait: holds {2**32 + 1}; at most {2**32}"),
    ],
)
def test_numbers_beyond_all_memories(node: DmaCopy | Loop, expected: str) -> None:
    with pytest.raises(ProgramError, match=re.escape(expected) + ".* is possible"):
        check_form(program(node))


def test_more_dram_than_the_chip_has() -> None:
    there = DEVICE.dram_bytes * DEVICE.cores_per_chip
    large = replace(program(load(), store(0)), tensors=(*TENSORS, DramTensor("s", "scratch", (there,), "int8")))
    needed = sum(tensor.size_bytes for tensor in large.tensors)
    with pytest.raises(ProgramError, match=f"take {needed} bytes of DRAM; inf1 has {there}: use a smaller batch"):
        verify(large, DEVICE)


def test_more_memory_than_the_host_has() -> None:
    large = replace(program(load(), store(0)), tensors=(*TENSORS, DramTensor("s", "scratch", (2**47,), "int8")))
    with pytest.raises(ProgramError, match=r"tensors take \d+ bytes; this machine has \d+: use a smaller batch"):
        Machine(large, DEVICE, {})


def test_more_instructions_than_can_be_looked_at() -> None:
    count = 5_000_001
    with pytest.raises(ProgramError, match=f"runs {count} instructions; at most 5000000 can be looked at"):
        verify(program(Loop(count, (load(),))), DEVICE)


@pytest.mark.parametrize(
    ("skew", "expected"),
    [(3, "are not aligned to bfloat16"), (2**15, r"bytes 0 to \d+ of each SBUF partition; inf1 has")],
)
def test_a_skew_keeps_to_the_memory(skew: int, expected: str) -> None:
    skewed = replace(sbuf(0, 32), skew=skew)
    with pytest.raises(ProgramError, match=expected):
        check_tile(skewed, DEVICE, (), "dma_copy.target", any_start=True)


def test_only_a_transfer_is_skewed() -> None:
    check_tile(replace(sbuf(0, 32), skew=8), DEVICE, (), "dma_copy.target", any_start=True)
    with pytest.raises(ProgramError, match="skewed by 8 bytes in SBUF; only a DMA does so, in SBUF"):
        check_tile(replace(sbuf(0, 32), skew=8), DEVICE, (), "activation.source")
