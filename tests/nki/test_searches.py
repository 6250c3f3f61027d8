"""Calls that look along tiles, against NumPy: they choose and copy, so that every bit is theirs."""

import numpy as np
import pytest

from tests.nki import beta1, beta2
from tvm_neuron.errors import ProgramError

RANDOM = np.random.default_rng(11)


@pytest.mark.parametrize("mode", ["nest", "strict"])
def test_what_looks_along_a_tile(mode: str) -> None:
    x = np.stack([RANDOM.permutation(40) for _ in range(32)]).astype(np.float32) - 20
    chosen, low = RANDOM.integers(0, 40, (32, 1)).astype(np.uint16), RANDOM.standard_normal((32, 40)).astype(np.float32)
    traced = beta2.searched.trace(x, chosen, low)
    top, without, triangle, counted, kept, most, gathered, mixed, some, where = traced.run(mode)
    place, rows = np.arange(40), np.arange(32)[:, None]
    order = np.argsort(-x, 1)[:, :8]
    np.testing.assert_array_equal(top, np.take_along_axis(x, order, 1))
    np.testing.assert_array_equal(where, order)
    np.testing.assert_array_equal(without, np.where(x > np.sort(x, 1)[:, [-9]], -1, x))
    wanted = np.where(3 + rows - place > 0, x, -2)
    np.testing.assert_array_equal(triangle, wanted)
    np.testing.assert_array_equal(counted, 1 + 100 * rows + 2 * place + 0 * x)
    np.testing.assert_array_equal(kept, np.where(wanted != 0, x, -5))
    np.testing.assert_array_equal(most, np.where(wanted != 0, x, -5).max(1, keepdims=True))
    np.testing.assert_array_equal(gathered[:16], x[:16, chosen[:16, 0]])
    np.testing.assert_array_equal(gathered[16:], x[16:, chosen[16:, 0]])
    np.testing.assert_array_equal(mixed, x[::-1])
    np.testing.assert_array_equal(some, np.where(wanted > 0, low, x))
    assert traced.time().busy_ps["gpsimd"] > 0


def test_masks_leave_out_partitions_and_what_is_searched() -> None:
    x = RANDOM.permutation(200 * 40).reshape(200, 40).astype(np.float32)
    values, places = beta1.masked_search(x, 30)
    order = np.argsort(-x[:, :30], 1)[:, :8]
    np.testing.assert_array_equal(places, order)
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, 1))


def test_statistics_of_the_partitions_that_a_mask_leaves() -> None:
    """Its lattice has two axes and the tile of statistics three: the first is the partitions of both."""
    x = RANDOM.standard_normal((200, 700)).astype(np.float32)
    wide = x.astype(np.float64)
    found = beta1.masked_statistics(x)
    np.testing.assert_allclose(found, np.stack([wide.mean(1), wide.var(1)], 1), atol=1e-5)  # sums of 700 in float32


def test_ranges_are_selected_on_later_cores_alone() -> None:
    x = RANDOM.standard_normal((16, 12)).astype(np.float32)
    low, high = np.arange(16, dtype=np.float32)[:, None] / 2, np.full((16, 1), 11, np.float32)
    out, most = beta2.windowed.on("trn2")(x, low, high)
    place = np.arange(12) + 2
    wanted = np.where((place >= low) & (place < high), x, -9)
    np.testing.assert_array_equal(out, wanted)
    np.testing.assert_array_equal(most[:, 0], wanted.max(1))
    with pytest.raises(ProgramError, match=r"beta2\.py:\d+.*range_select: trn1 has NeuronCore-v2; it is of v3"):
        beta2.windowed(x, low, high)
