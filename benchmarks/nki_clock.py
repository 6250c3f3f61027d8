"""The clock beside what was measured on a trn1: NKIBench's kernels, their times, busy engines and bytes of DRAM.

    python -m benchmarks.nki_clock --samples FOLDER --measured nkibench.csv [--only TEXT]

FOLDER has a checkout of AccelOpt somewhere below. The table of what was measured has the columns `case`, `ms`,
`hbm_read`, `hbm_write`, `spill_save`, `spill_reload` in bytes, and `vec_pct`, `act_pct`, `pool_pct` as parts of the
time. Kernels are traced and timed; their values are compared by `benchmarks.nki_kernels`.
"""

import argparse
import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.nki_kernels import load, reference_of
from tvm_neuron.sim import Timing

ENGINES = {"pool": "vec_pct", "act": "act_pct", "gpsimd": "pool_pct"}  # ours, and the profiler's
_HEAD = ("kernel", "modelled us", "measured us", "ratio", "Vector %", "Scalar %", "GpSimd %", "MB read", "MB written")
_ROW = "{:42} {:>11} {:>11} {:>5} {:>11} {:>11} {:>11} {:>17} {:>17}  {}"
_SHARE = 0.1  # within which a busy share is right
_SAME = 0.02  # within which bytes are the same


@dataclass(frozen=True)
class Row:
    """One kernel. `asked_bytes` are what its own loads and stores move, before any is shared or spilled."""

    name: str
    timing: Timing
    asked_bytes: int
    measured: Mapping[str, float]

    @property
    def ratio(self) -> float:
        """Modelled time over measured."""
        return self.timing.total_ps / 1e9 / self.measured["ms"]

    @property
    def is_own(self) -> bool:
        """Whether the chip's compiler moved no bytes that the kernel doesn't ask for."""
        spilled = self.measured["spill_save"] + self.measured["spill_reload"]
        return not spilled and self.measured["hbm_read"] + self.measured["hbm_write"] <= self.asked_bytes * (1 + _SAME)

    def shares(self) -> dict[str, tuple[float, float]]:
        """By engine: the part of the time for which it is busy, ours and measured."""
        busy = self.timing.busy_ps
        return {e: (busy.get(e, 0) / self.timing.total_ps, self.measured[name]) for e, name in ENGINES.items()}

    def moved(self) -> list[tuple[float, float]]:
        """Bytes read and written, ours and measured."""
        ours = self.timing.dram_read_bytes, self.timing.dram_written_bytes
        return list(zip(ours, (self.measured["hbm_read"], self.measured["hbm_write"]), strict=True))

    def line(self) -> str:
        """Of the table: beside each measured number how far ours is from it, or ours."""
        shares = (f"{100 * their:.0f} {100 * (ours - their):+.0f}" for ours, their in self.shares().values())
        moved = (f"{ours / 1e6:.1f} / {their / 1e6:.1f}" for ours, their in self.moved())
        times = f"{self.timing.latency_us:.1f}", f"{1000 * self.measured['ms']:.1f}", f"{self.ratio:.2f}"
        return _ROW.format(self.name, *times, *shares, *moved, "own" if self.is_own else "")


def rows(folder: Path, measured: Sequence[Mapping[str, str]], only: Sequence[str]) -> Iterator[Row]:
    """The kernels of which the table has a row."""
    for path in sorted(folder.rglob("NKIBench/kernels/*.py")):
        name = path.stem.removesuffix("_0")
        if only and not any(text in name for text in only):
            continue
        row = next(row for row in measured if sorted(row["case"].split("_")) == sorted(name.split("_")))
        reference = reference_of(folder, path)
        np.random.seed(0)
        traced = load(path).kernel.trace(*reference.transform_to_nki_inputs(reference.get_inputs()))
        fitted, timing = traced.assembled.fitted, traced.time()
        asked = timing.dram_bytes + fitted.spared_bytes - fitted.saved_bytes - fitted.reloaded_bytes
        numbers = {key: float(text) for key, text in row.items() if key not in ("case", "bound") and text != "None"}
        yield Row(name, timing, asked, numbers)


def summary(every: Sequence[Row]) -> str:
    """Errors of several kernels."""
    errors = [abs(row.ratio - 1) for row in every]
    shares = [abs(ours - measured) <= _SHARE for row in every for ours, measured in row.shares().values()]
    bytes_ = [abs(ours / measured - 1) <= _SAME for row in every for ours, measured in row.moved()]
    return (
        f"{len(every)} kernels, time {np.mean(errors):.0%} off in the mean, {max(errors):.0%} at worst; busy shares "
        f"within {_SHARE:.0%}: {sum(shares)} of {len(shares)}; bytes within {_SAME:.0%}: {sum(bytes_)} of {len(bytes_)}"
    )


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=Path, required=True, help="folder with the checkout")
    parser.add_argument("--measured", type=Path, required=True, help="table of what was measured")
    parser.add_argument("--only", action="append", default=[], help="only kernels whose name has this text")
    options = parser.parse_args()
    with options.measured.open() as file:
        measured = list(csv.DictReader(file))
    print(_ROW.format(*_HEAD, "traffic"))
    found = []
    for row in rows(options.samples, measured, options.only):
        found.append(row)
        print(row.line(), flush=True)
    for title, some in (("traffic of their own", [row for row in found if row.is_own]), ("all", found)):
        if some:
            print(f"{title}: {summary(some)}")


if __name__ == "__main__":
    main()
