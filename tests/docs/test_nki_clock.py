"""The table of kernels by the clock beside what was measured, of a kernel of our own and a made-up measurement."""

from pathlib import Path

import pytest

from benchmarks.nki_clock import rows, summary

KERNEL = """
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for at in nl.sequential_range(2):
        nl.store(out, value=nl.exp(nl.load(x)))
    return out
"""
REFERENCE = """
import numpy as np

get_inputs = lambda: (np.ones((128, 512), np.float32),)
transform_to_nki_inputs = tuple
"""
TILE = 128 * 512 * 4


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (("kernels/twice_N512_M128_0.py", KERNEL), ("reference/twice_N512_M128_numpy_1.py", REFERENCE)):
        path = tmp_path / "NKIBench" / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
    return tmp_path


def measured(read: int, spilled: int = 0) -> dict[str, str]:
    numbers = {"ms": 0.01, "hbm_read": read, "hbm_write": 2 * TILE, "spill_save": spilled, "spill_reload": 0}
    shares = {"vec_pct": 0.0, "act_pct": 0.5, "pool_pct": 0.0, "pe_pct": None}
    return {"case": "twice_M128_N512", "bound": "x"} | {key: str(value) for key, value in (numbers | shares).items()}


@pytest.mark.parametrize(
    ("read", "spilled", "is_own"), [(TILE, 0, True), (2 * TILE, 0, True), (3 * TILE, 0, False), (TILE, 8, False)]
)
def test_a_kernel_beside_what_was_measured(folder: Path, read: int, spilled: int, is_own: bool) -> None:
    (row,) = rows(folder, [measured(read, spilled)], ["twice"])
    assert row.asked_bytes == 4 * TILE  # one of the loads is spared
    assert row.moved() == [(TILE, read), (2 * TILE, 2 * TILE)]
    assert row.is_own == is_own
    assert row.ratio == pytest.approx(row.timing.latency_us / 10)
    assert row.shares()["pool"] == (0, 0)
    assert row.shares()["act"][0] == pytest.approx(row.timing.busy_ps["act"] / row.timing.total_ps)
    assert row.line().split()[-1] == ("own" if is_own else f"{2 * TILE / 1e6:.1f}")
    assert f"bytes within 2%: {2 if read == TILE else 1} of 2" in summary([row])


def test_only_what_is_asked_for(folder: Path) -> None:
    assert not list(rows(folder, [measured(TILE)], ["another"]))
