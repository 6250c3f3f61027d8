"""Each group of tiles is reordered with as much memory as it fits in, whatever other groups need."""

from collections.abc import Sequence

import pytest

from tests.codegen.test_reorder import DEVICE, _tiled
from tests.codegen.test_tiles import _stage
from tvm_neuron.codegen.stage import Stage
from tvm_neuron.codegen.steps import without
from tvm_neuron.codegen.tiles.orders import orders
from tvm_neuron.codegen.tiles.reorder import Reordering
from tvm_neuron.codegen.tiles.usage import Usage, usage
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.tensor import Tensor


@pytest.fixture(scope="module")
def stage() -> Stage:
    """With a row of output at a time: the sizes below are of these kernels."""
    with without("widen_outputs"):
        return _tiled(_stage())


def used(stage: Stage, kernels: Sequence[Kernel]) -> Usage:
    return usage(kernels, stage.partition_of, stage.dtypes, stage.in_dram())


def halves(stage: Stage) -> list[range]:
    """Two groups, of which the second needs more memory."""
    middle = len(stage.kernels) // 2
    return [range(middle), range(middle, len(stage.kernels))]


def made(kernels: Sequence[Kernel], group: range) -> list[Tensor]:
    """What the kernels of the group write, in their order."""
    return [kernel.out for kernel in kernels[group.start : group.stop]]


def within(stage: Stage, group: range, most_bytes: int) -> list[Tensor]:
    """The same where the group may take so much."""
    kernels = Reordering(stage.kernels, group, used(stage, stage.kernels), DEVICE).reordered(most_bytes, 24)
    return made(kernels, group)


def test_a_group_that_needs_more_takes_a_smaller_share_than_the_other(stage: Stage) -> None:
    room, shares = 8400, (1.0, 0.95)
    first, second = halves(stage)
    large, small = (int(share * room) for share in shares)
    found = list(orders(stage, [first, second], shares, room, 24, DEVICE))
    assert [made(kernels, first) for kernels in found] == [within(stage, first, b) for b in (large, small)]
    assert [made(kernels, second) for kernels in found] == [within(stage, second, small)] * 2
    assert within(stage, first, large) != within(stage, first, small) != made(stage.kernels, first)
    assert all(max(used(stage, kernels).alive) <= room for kernels in found)


def test_a_group_that_fits_with_no_share_stays_as_it_is(stage: Stage) -> None:
    first, second = halves(stage)
    room = max(used(stage, stage.kernels).alive) - 150
    (kernels,) = orders(stage, [first, second], (1.4,), room, 24, DEVICE)
    assert kernels[second.start :] == stage.kernels[second.start :]
    assert made(kernels, first) == within(stage, first, int(1.4 * room)) != made(stage.kernels, first)


def test_nothing_is_tried_twice(stage: Stage) -> None:
    assert len(list(orders(stage, halves(stage), (4.0, 4.0, 4.0), 20_000, 24, DEVICE))) == 1
    assert not list(orders(stage, halves(stage), (1.0, 0.9), 1000, 24, DEVICE))
    assert not list(orders(stage, [], (1.0, 0.9), 20_000, 24, DEVICE))
