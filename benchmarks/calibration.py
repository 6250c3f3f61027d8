"""What AWS published of its own devices and compiler, beside the model: `python -m benchmarks.calibration [--seed N]`.

Of the device nothing is fitted to a network: every constant is the chip's, with its source, and one rule serves all.
The host's request is fitted to the rows with a host in them (`published.py`), and judged by rows that the fit has not
seen.

* The kernel is known instruction by instruction, so its program is timed by the clock as any other. Fourteen more,
  whose sources are not here, are timed by `benchmarks.nki_clock` from a checkout of their own.
* Of the networks neither the instructions nor their schedule are known. So each operator gets the instructions that it
  can't do without (`plain.py`), with their costs, and one operator is taken after the other. What this compiler makes
  of the same networks is in `busy.py`; it overlaps operators and may be quicker than what AWS measured.
* What was measured end to end has a host in it, of which the model knows the link only: there the model must be below.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from benchmarks.mamba import mamba
from benchmarks.pipeline import cached_weights
from benchmarks.plain import Plain, Work, bert, in_turn_us, resnet
from benchmarks.published import END_TO_END, Compared, compare_all, fitted_us, hold_out
from benchmarks.row import Bar, Kind, Row
from benchmarks.table import CONSOLE, make_table, show
from tvm_neuron.codegen.sync import synchronise
from tvm_neuron.hw import Device, load_device
from tvm_neuron.sim import time_program

LARGEST_ERROR = 0.15


@dataclass(frozen=True)
class Calibrated:
    """One measurement and what the model says."""

    chip: str
    what: str
    unit: str
    measured: float
    modelled: float
    rule: str
    is_upper_bound: bool = False

    def row(self) -> Row:
        """What is modelled beside what was measured, and whether it is near enough, or the bound respected."""
        below, near = Bar(1, is_ratio=True), Bar(LARGEST_ERROR, is_ratio=True, kind=Kind.WITHIN)
        return Row(
            what=f"{self.what}, {self.chip}, by {self.rule}", unit=self.unit, samples=(self.modelled,),
            peer="AWS, measured", peer_samples=(self.measured,), bar=below if self.is_upper_bound else near,
        )  # fmt: skip


@dataclass(frozen=True)
class Fit:
    """Between which values measurements put a number of a chip, and which is taken."""

    what: str
    unit: str
    low: float
    high: float
    taken: float


@dataclass(frozen=True)
class Network:
    """A network that AWS measured on one core; `host_bytes` cross the host's link where that is in the time."""

    chip: str
    what: str
    measured_us: float
    operators: Callable[[Plain], Iterator[Work]]
    host_bytes: int = 0

    def modelled_us(self, device: Device) -> float:
        """Operators in turn, and the call of the host."""
        host_us = device.host_call_ns / 1e3 + self.host_bytes * 1e6 / device.host_bytes_per_second
        return in_turn_us(self.operators(Plain(device)), device) + (host_us if self.host_bytes else 0.0)


NETWORKS = (
    Network("inf1", "ResNet-50, batch 1, on the device", 2709.6, resnet),
    Network("inf1", "BERT-base, 128 tokens, batch 1", 7900, partial(bert, batch=1)),
    Network("inf1", "BERT-base, 128 tokens, batch 3", 10500, partial(bert, batch=3)),
    Network("inf2", "BERT-base, 128 tokens, batch 1", 1050, partial(bert, batch=1)),
    Network("inf2", "ResNet-50, batch 1, end to end", 830, resnet, 4 * (3 * 224 * 224 + 1000)),
)
CACHED_MB = (10.6, 12.8)  # weights a core: of the largest model that stayed cached, and of the smallest that did not


def measure() -> list[Calibrated]:
    """All measurements."""
    device = load_device("trn1")
    few, kernel = (time_program(synchronise(mamba(channels), device), device) for channels in (256, 4096))
    active = 100 * kernel.busy_ps["pool"] / kernel.total_ps
    rows = [
        Calibrated("trn1", "Mamba kernel, version 1", "us", 2340, kernel.latency_us, "clock"),
        Calibrated("trn1", "Mamba kernel: Vector engine active", "%", 92.16, active, "clock"),
        Calibrated("trn1", "Mamba kernel, version 1, 256 channels", "us", 172.93, few.latency_us, "clock"),
    ]
    for network in NETWORKS:
        rule = "operators in turn" + (" and the host's link" if network.host_bytes else "")
        modelled = network.modelled_us(load_device(network.chip))
        is_bound = network.host_bytes > 0
        rows.append(Calibrated(network.chip, network.what, "us", network.measured_us, modelled, rule, is_bound))
    return rows


def fits() -> list[Fit]:
    """What the measurements say of inf1's numbers that AWS doesn't."""
    device = load_device("inf1")

    def is_near(gb_per_second: float) -> bool:
        other = replace(device, dram_bytes_per_second=round(gb_per_second * 1e9))
        errors = [n.modelled_us(other) / n.measured_us - 1 for n in NETWORKS if n.chip == device.name]
        return max(map(abs, errors)) <= LARGEST_ERROR

    near = [fifth / 5 for fifth in range(90, 130) if is_near(fifth / 5)]
    return [
        Fit("inf1: DRAM bandwidth of one core", "GB/s", min(near), max(near), device.dram_bytes_per_second / 1e9),
        Fit("inf1: SBUF, from which weights stay cached", "MB", *CACHED_MB, device.sbuf_bytes / 1e6),
    ]


def rows() -> list[Row]:
    """All of them as rows of the table."""
    return [*(found.row() for found in measure()), *cached_weights()]


def _share(value: float) -> str:
    return f"{value:+.0%}"


def _errors(rows: Sequence[Compared], host_us: float | None = None) -> tuple[str, str]:
    """Mean and worst relative error."""
    errors = [abs(row.error(host_us)) for row in rows]
    return f"{sum(errors) / len(errors):.0%}", f"{max(errors):.0%}"


def _show_published(seed: int) -> None:
    """Each network that was measured: ours, and what lies around it; errors by group; the fit and its hold-out."""
    found = compare_all()
    names = ("group", "network", "chip", "measured us>", "ours us>", "error>", "bound us>", "operators in turn us>")
    table = make_table("Networks as this compiler builds them, beside what was measured", *names)
    for each in found:
        row = each.row
        times = (f"{us:,.0f}" for us in (each.bound_us, each.plain_us))
        ours = (f"{row.measured_us:,.0f}", f"{each.ours_us:,.0f}", _share(each.error()))
        table.add_row(row.group, row.what, row.chip, *ours, *times)
    CONSOLE.print(table)
    table = make_table("Errors by group", "group", "rows>", "mean>", "worst>")
    for group in dict.fromkeys(each.row.group for each in found):
        rows = [each for each in found if each.row.group == group]
        table.add_row(group, str(len(rows)), *_errors(rows))
    CONSOLE.print(table)
    _show_fit([each for each in found if each.row.group == END_TO_END], seed)


def _show_fit(rows: Sequence[Compared], seed: int) -> None:
    table = make_table(
        "The host's request, fitted", "rows of the fit", "us>", "mean>", "worst>", "held out", "mean>", "worst>"
    )
    fitted, held = hold_out(rows, seed)
    for used, others in ((fitted, held), (held, fitted), (rows, [])):
        us = fitted_us(used)
        judged = _errors(others, us) if others else ("", "")
        names = (", ".join(each.row.what.partition(",")[0] for each in some) for some in (used, others))
        table.add_row(next(names), f"{us:,.0f}", *_errors(used, us), next(names), *judged)
    CONSOLE.print(table)


def main() -> None:
    """The tables."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.calibration", description="The model beside AWS's numbers."
    )
    parser.add_argument("--seed", type=int, default=0, help="draws the rows that the host's fit does not see (0)")
    options = parser.parse_args()
    show(rows())
    _show_published(options.seed)
    table = make_table("What the same measurements say of a chip's numbers", "number", "from>", "to>", "taken>")
    for fit in fits():
        table.add_row(fit.what, f"{fit.low:,.1f} {fit.unit}", f"{fit.high:,.1f} {fit.unit}", f"{fit.taken:,.1f}")
    CONSOLE.print(table)


if __name__ == "__main__":
    main()
