"""findings: what a reader should look at first, in sentences, by what it would gain at most."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tvm_neuron.isa.engines import COMPUTE
from tvm_neuron.profile.page.facts import Moved, Operator
from tvm_neuron.profile.run import CoreRun

MOST, LEAST = 4, 2
_AGAIN = 1.05  # a tensor that is loaded so often is loaded again
_SHARE = 0.01  # of the time: what gains less is not worth a sentence while there are others


@dataclass(frozen=True, slots=True)
class Finding:
    """`gain_us` is what there would be less to do: the run gains no more, and less where other work hides it."""

    gain_us: float
    text: str


def findings(
    report: dict[str, Any], cores: Sequence[CoreRun], tensors: Sequence[Moved], layers: Sequence[Operator]
) -> list[Finding]:
    """Two to four, the largest gain first; fewer of what takes no time at all."""
    found = [*_reloads(tensors, report), *_spills(tensors, cores), *_engines(report, cores), *_slow(layers, report)]
    found += _host(report)
    ranked = sorted((one for one in found if one.gain_us > 0), key=lambda one: -one.gain_us)
    worth = [one for one in ranked if one.gain_us >= _SHARE * report["latency_us"]]
    return (worth if len(worth) >= LEAST else ranked[:LEAST])[:MOST]


def _reloads(tensors: Sequence[Moved], report: dict[str, Any]) -> Iterator[Finding]:
    for row in tensors[:3]:
        if row.kind != "scratch" and row.times > _AGAIN:
            share = row.read / report["dram_bytes"]
            yield Finding(
                row.again_us,
                f"{_names(row.readers)} loads {row.kind} '{row.name}' {row.times:.1f} times ({row.read / 1e6:.2f} MB, "
                f"{share:.0%} of the DRAM bytes): it does not stay in SBUF. Smaller tiles of it, or an order in which "
                "all that needs a part follows at once, would load it once.",
            )


def _spills(tensors: Sequence[Moved], cores: Sequence[CoreRun]) -> Iterator[Finding]:
    spilled = [row for row in tensors if row.kind == "scratch"]
    if spilled:
        size = sum(row.read + row.written for row in spilled)
        us = size / cores[0].recording.neff.device.dram_bytes_per_second * 1e6
        most = max(spilled, key=lambda row: row.read + row.written)
        yield Finding(
            us,
            f"{len(spilled)} {'tensor waits' if len(spilled) == 1 else 'tensors wait'} in DRAM, where SBUF has no room "
            f"or data change their partitions: {size / 1e6:.2f} MB out and back, the most for '{most.name}' of "
            f"{_names(most.writers)}. A smaller batch, or bfloat16 where float32 is kept, would leave room.",
        )


def _engines(report: dict[str, Any], cores: Sequence[CoreRun]) -> Iterator[Finding]:
    by_name = {row["queue"]: row for row in report["engines"]}
    compute = [by_name[name] for name in COMPUTE if name in by_name]
    if not compute:
        return
    busiest = max(compute, key=lambda row: row["busy_us"])
    dma_us = sum(row["busy_us"] for name, row in by_name.items() if name not in COMPUTE)
    if dma_us > busiest["busy_us"]:
        kinds = report["dram_bytes_by_kind"]
        most = max(kinds, key=lambda kind: kinds[kind], default="weight")
        advice = "a larger batch uses each of them for more" if most == "weight" else "a smaller dtype needs fewer"
        yield Finding(
            dma_us - busiest["busy_us"],
            f"The DRAM is busy for {dma_us / report['latency_us']:.0%} of the time, the busiest engine "
            f"({busiest['queue']}) for {busiest['share']:.0%}: the bytes bound this model, "
            f"{kinds.get(most, 0) / max(report['dram_bytes'], 1):.0%} of them of the kind {most}; {advice}.",
        )
    waits = {other: us for other, us in busiest["stalls_us"].items() if other in COMPUTE}
    if waits:
        other = max(waits, key=lambda name: waits[name])
        yield Finding(
            waits[other],
            f"The engine {busiest['queue']}, the busiest, stands still for {waits[other]:,.1f} us until {other} is "
            "through: look in the engines' rows below for what waits there.",
        )


def _slow(layers: Sequence[Operator], report: dict[str, Any]) -> Iterator[Finding]:
    for row in sorted(layers, key=lambda row: row.least_us - row.us)[:2]:
        if not row.macs:
            what = "It multiplies nothing: its time is that of the vector and scalar engines, or of its transfers"
        elif row.array_share < 0.5:
            what = f"Its products use {row.array_share:.0%} of the array's rows and columns"
        else:
            what = "The array waits for operands or for PSUM meanwhile"
        yield Finding(
            row.us - row.least_us,
            f"{row.op} {row.name} takes {row.us:,.1f} us, {row.us / report['latency_us']:.0%} of the time; its "
            f"multiplications at the array's peak and its bytes over the DRAM need {row.least_us:,.1f} us. {what}.",
        )


def _host(report: dict[str, Any]) -> Iterator[Finding]:
    on_cpu = [row for row in report["placement"] if row["where"] == "cpu"]
    if on_cpu:
        us = sum(row["link_us"] for row in report["transfers"])
        first = on_cpu[0]
        yield Finding(
            us,
            f"{len(on_cpu)} {'operator runs' if len(on_cpu) == 1 else 'operators run'} on the CPU, so tensors cross "
            f"the host's link; the first is {first['op']} {first['name']}: {first['reason']}. Its own time adds to it.",
        )


def _names(operators: Sequence[str]) -> str:
    """Up to two names."""
    shown = " and ".join(operators[:2])
    return f"{shown} and {len(operators) - 2} others" if len(operators) > 2 else shown or "nobody"
