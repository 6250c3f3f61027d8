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
