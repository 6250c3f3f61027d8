"""Exchanges take what their rounds take by hand: the start of a DMA, and the busiest of engines, DRAM and ports."""

import pytest

from tvm_neuron.hw import load_device, load_instance
from tvm_neuron.program import parse_program
from tvm_neuron.sim import time_program
from tvm_neuron.spmd import Exchange, Join, Layout, exchange_ps, joining, together_ps

DEVICE = load_device("inf2")
INSTANCE = load_instance("inf2.24xlarge", DEVICE)  # chips of two cores
MB = 1_000_000
START, CORE, DRAM, PORT = 1.3, 272e3, 820e3, 48e3  # us, and bytes in one


def exchange(operation: str, groups: list[list[int]], size: int = MB) -> Exchange:
    return Exchange("e", operation, "a", "b", tuple(map(tuple, groups)), size, "add")


def us(step: Exchange) -> float:
    return exchange_ps(step, DEVICE, INSTANCE)[0] / 1e6


@pytest.mark.parametrize(
    ("operation", "groups", "wanted"),
    [
        # on a chip both senders read half a tensor and both receivers write it, or read and write it
        ("reduce_scatter", [[0, 1]], START + 2 * 3 * MB / 2 / DRAM),
        ("all_gather", [[0, 1]], START + 2 * 2 * MB / DRAM),
        ("all_reduce", [[0, 1]], 2 * START + 2 * 3 * MB / 2 / DRAM + 2 * 2 * MB / 2 / DRAM),
        # between chips 0 and 1 the port of each way
        ("all_gather", [[0, 2]], START + MB / PORT),
        ("all_to_all", [[0, 2]], START + MB / 2 / PORT),
        # of a ring over two chips one transfer goes each way; over a chain of three the way back passes two ports
        ("all_gather", [[0, 1, 2, 3]], 3 * (START + MB / PORT)),
        ("all_gather", [[0, 2, 4]], 2 * (START + MB / PORT)),
        ("reduce_scatter", [[0, 2, 4]], 2 * (START + 333_334 / PORT)),
        # two groups meet in the same port
        ("all_gather", [[0, 2], [1, 3]], START + 2 * MB / PORT),
        ("collective_permute", [[0, 1]], START + MB / CORE),
        ("collective_permute", [[0, 2], [2, 0], [1, 1]], START + MB / PORT),
        ("collective_permute", [[1, 1]], 0),
        ("all_reduce", [[0], [1]], 0),
    ],
)
def test_rounds(operation: str, groups: list[list[int]], wanted: float) -> None:
    assert us(exchange(operation, groups)) == pytest.approx(wanted, rel=1e-5)


def test_bytes_that_a_core_sends() -> None:
    groups = [[0, 1, 2, 3]]
    assert exchange_ps(exchange("all_reduce", groups), DEVICE, INSTANCE)[1] == 2 * 3 * MB // 4
    assert exchange_ps(exchange("all_gather", groups), DEVICE, INSTANCE)[1] == 3 * MB
    assert exchange_ps(exchange("all_to_all", groups), DEVICE, INSTANCE)[1] == 3 * MB // 4


def test_joining_gathers_among_those_that_have_different_parts() -> None:
    layout = Layout((2, 1), ((0, 0), (0, 0), (1, 0), (1, 0)))
    step = joining(Join("a", "b", layout, True, MB))
    assert step.groups == ((0, 2), (1, 3))
    assert us(step) == pytest.approx(START + 2 * MB / PORT, rel=1e-5)


def test_cores_of_a_chip_share_its_dram() -> None:
    """Copies of 4 MB: two cores of inf2 have DRAM enough, four of inf1 do not."""
    text = 'tensor 0 input "x" 1024x1024 float32\ntensor 1 output "y" 1024x1024 float32\norigin 0 Identity "copy"\n'
    for ring in range(8):
        at = ring * 2**17
        text += f"dma_copy target=dram.float32{{t=1;at={at};dims=1*{2**17}}} "
        text += f"source=dram.float32{{t=0;at={at};dims=1*{2**17}}} ring={ring} origin=0\n"
    program = parse_program(text)
    slower = {}
    for name in ("inf1", "inf2"):
        device = load_device(name)
        instance = load_instance("", device)
        alone = time_program(program, device).total_ps
        assert together_ps(program, device, instance, 1) == pytest.approx(alone, rel=0.02)
        slower[name] = together_ps(program, device, instance, instance.cores) / alone
    assert slower["inf2"] == pytest.approx(1, rel=0.1)
    inf1 = load_device("inf1")
    bytes_at_once = 4 * inf1.dram_bytes_per_second / load_instance("", inf1).chip_dram_bytes_per_second
    assert slower["inf1"] == pytest.approx(bytes_at_once, rel=0.15)
