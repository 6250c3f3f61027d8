"""What does not fit is spilled, and what is loaded again and again is loaded once; numbers and traffic are checked."""

import numpy as np
import pytest

from tests.nki import beta1

COLUMNS = 4096  # 16 KiB of each partition in float32; SBUF has 192


@pytest.mark.parametrize("blocks", [3, 18])
@pytest.mark.parametrize("mode", ["nest", "strict"])
def test_spilled_tiles_come_back(blocks: int, mode: str) -> None:
    random = np.random.default_rng(blocks)
    x = random.standard_normal((blocks, 128, COLUMNS)).astype(np.float32)
    w = random.standard_normal((128, COLUMNS)).astype(np.float32)
    traced = beta1.crowded.trace(x, w)
    tiles = x.astype(np.float64) + w
    np.testing.assert_allclose(traced.run(mode), tiles * tiles[::-1], 1e-6, 1e-6)  # two roundings of float32
    fitted, time, tile = traced.assembled.fitted, traced.time(), 128 * COLUMNS * 4
    assert fitted.loads == blocks - 1  # of w
    assert bool(fitted.saved_bytes) == (blocks > 9)
    assert time.dram_written_bytes == blocks * tile + fitted.saved_bytes
    assert time.dram_read_bytes == (blocks + 1) * tile + fitted.reloaded_bytes
    # a tile that went out once holds the same when it goes again
    assert fitted.saved_bytes <= blocks * tile


def test_what_moves_the_fewest_bytes_makes_room() -> None:
    random = np.random.default_rng(1)
    x = random.standard_normal((6, 128, COLUMNS)).astype(np.float32)
    rows = random.standard_normal((8, 1, COLUMNS)).astype(np.float32)
    traced = beta1.rows_beside_tiles.trace(x, rows)
    out, sums = traced.run()
    np.testing.assert_array_equal(out, 2 * x)
    wanted = sum(np.tensordot(1.0 + i + np.arange(8), rows.astype(np.float64), 1) for i in range(3))
    np.testing.assert_allclose(sums, wanted, 1e-5, 1e-4)  # sums of 24 products in float32
    fitted = traced.assembled.fitted
    assert fitted.saved_bytes == 0 < fitted.reloaded_bytes < 6 * 128 * COLUMNS * 4  # rows come again, no tile goes
