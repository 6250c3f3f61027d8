"""PipelineUse: what several cores give that work on consecutive inputs at the same time, each on its stage.

The interval between two inputs is that of the clock of all cores, which slow each other where they share a chip's DRAM
and the ports to the next (`sim/together.py`); the `limit` is what alone would need most of it. A tensor that leaves a
chip passes every port of the chain up to its last reader, while the cores compute other inputs.
The latency is what one input takes through all, alone.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import lcm
from typing import Any

from tvm_neuron.hw import Instance
from tvm_neuron.neff import Neff, Pipeline
from tvm_neuron.sim import Line, Timing, interval_ps, time_program

_US_PER_S = 1e6


@dataclass(frozen=True, slots=True)
class StageUse:
    """One program: `share` is that of the interval in which a core of it works; `load_us` what loading takes, once."""

    core: int  # the first
    replicas: int  # cores that take inputs in turn
    chip: int  # of the first
    latency_us: float
    share: float
    kept_bytes: int  # of weights, which stay in SBUF
    streamed_bytes: int  # of weights, from DRAM in every run
    sent_bytes: int  # to other cores
    load_us: float
    first: str  # the operators that its program begins and ends with
    last: str


@dataclass(frozen=True, slots=True)
class PipelineUse:
    """One subgraph on its cores; `limit` is what would take longest of the interval between two inputs, if alone."""

    name: str
    instance: str
    interval_us: float
    latency_us: float
    load_us: float
    link_us: float  # of the latency
    limit: str
    stages: tuple[StageUse, ...]

    @property
    def cores(self) -> int:
        """Of all stages."""
        return sum(stage.replicas for stage in self.stages)

    @property
    def inputs_per_second(self) -> float:
        """The throughput."""
        return _US_PER_S / self.interval_us if self.interval_us else 0.0

    @property
    def cores_for_all_weights(self) -> int:
        """About how many cores hold all weights, if each holds as much as the fullest does."""
        most = max(stage.kept_bytes for stage in self.stages)
        total = sum(stage.kept_bytes + stage.streamed_bytes for stage in self.stages)
        return -(-total // most) if most else 0

    @property
    def is_cached(self) -> bool:
        """Whether all weights stay in SBUF."""
        return not any(stage.streamed_bytes for stage in self.stages)

    def to_dict(self) -> dict[str, Any]:
        """As plain values, with those that follow from others."""
        derived = ("cores", "inputs_per_second", "is_cached", "cores_for_all_weights")
        return asdict(self) | {name: getattr(self, name) for name in derived}


def pipeline_use(pipeline: Pipeline, timings: Sequence[Timing], instance: Instance) -> PipelineUse:
    """The use of a pipeline whose cores take `timings`."""
    links = _links_us(pipeline, instance)
    interval = interval_us(pipeline, instance)
    limits = limits_us(pipeline.replicas, timings, instance)
    limits |= {f"link from chip {chip}": us for chip, us in links.items()}
    limit = max(limits, key=lambda key: limits[key])
    stages = tuple(_stage(number, pipeline, timing, instance, interval) for number, timing in enumerate(timings))
    return PipelineUse(
        name=pipeline.name,
        instance=instance.name,
        interval_us=interval,
        latency_us=sum(timing.latency_us for timing in timings) + sum(links.values()),
        load_us=max(stage.load_us for stage in stages),
        link_us=sum(links.values()),
        limit=limit,
        stages=stages,
    )


def interval_us(pipeline: Pipeline, instance: Instance, copies: int = 1) -> float:
    """Between two inputs of so many copies on an instance's cores, side by side and all under load, times their number.

    Raises:
        ProgramError: a program deadlocks.
    """
    size = sum(pipeline.replicas)
    # Further ones lie on their chips as the first of these do.
    different = min(copies, lcm(size, instance.cores_per_chip) // size)
    programs = [core.program for core in pipeline.cores]
    lines = [
        Line(programs, pipeline.cores[0].device, pipeline.replicas, _carried(pipeline, instance, at * size), at * size)
        for at in range(different)
    ]
    return len(lines) / sum(1e6 / ps for ps in interval_ps(lines, instance))


def way_of_an_input(
    pipeline: Pipeline, taken_ps: Sequence[int], instance: Instance
) -> tuple[list[int], list[tuple[int, int, int]]]:
    """When each program begins, which take so long; and the links that are passed: chip, begin and end, all in ps.

    Of cores that take inputs in turn it is the last, which is the farthest.
    """
    links = _links_us(pipeline, instance)
    begins: list[int] = []
    passed: list[tuple[int, int, int]] = []
    now = chip = 0
    for core, taken in zip(pipeline.last_cores, taken_ps, strict=True):
        for link in range(chip, instance.chip_of(core)):
            end = now + round(links.get(link, 0.0) * 1e6)
            passed.append((link, now, end))
            now = end
        chip = instance.chip_of(core)
        begins.append(now)
        now += taken
    return begins, passed


def limits_us(replicas: Sequence[int], timings: Sequence[Timing], instance: Instance) -> dict[str, float]:
    """How often each core and each chip's DRAM could take an input, by name: the interval in microseconds.

    Of a program on several cores, the name has the first; its bytes come and go from the chip of each in turn.
    """
    limits: dict[str, float] = {}
    moved: dict[int, float] = {}
    core = 0
    for count, timing in zip(replicas, timings, strict=True):
        limits[f"core {core}"] = timing.latency_us / count
        for chip in map(instance.chip_of, range(core, core + count)):
            moved[chip] = moved.get(chip, 0.0) + timing.dram_bytes / count
        core += count
    rate = instance.chip_dram_bytes_per_second
    return limits | {f"DRAM of chip {chip}": size * _US_PER_S / rate for chip, size in moved.items()}


def _links_us(pipeline: Pipeline, instance: Instance) -> dict[int, float]:
    """Microseconds for which the port from each chip to the next is busy with one input, at most."""
    start_us = pipeline.cores[0].device.dma_start_ns / 1e3
    carried = _carried(pipeline, instance)
    return {chip: start_us + size * _US_PER_S / instance.link_bytes_per_second for chip, size in carried.items()}


def _carried(pipeline: Pipeline, instance: Instance, first_core: int = 0) -> dict[int, int]:
    """Bytes of an input that pass from each chip to the next, where the first core is that one of the instance."""
    spans = [(first_core + at, count) for at, count in zip(pipeline.first_cores, pipeline.replicas, strict=True)]
    carried: dict[int, int] = {}
    for (first, _), neff in zip(spans, pipeline.cores, strict=True):
        for name, size in _sizes(neff, "output").items():
            readers = [
                instance.chip_of(start + count - 1)
                for (start, count), other in zip(spans, pipeline.cores, strict=True)
                if name in _sizes(other, "input")
            ]
            for chip in range(instance.chip_of(first), max(readers, default=0)):
                carried[chip] = carried.get(chip, 0) + size
    return carried


def _stage(number: int, pipeline: Pipeline, timing: Timing, instance: Instance, interval_us: float) -> StageUse:
    neff, core, replicas = pipeline.cores[number], pipeline.first_cores[number], pipeline.replicas[number]
    later = {name for other in pipeline.cores[number + 1 :] for name in _sizes(other, "input")}
    loading = time_program(neff.loading, neff.device)
    return StageUse(
        core=core,
        replicas=replicas,
        chip=instance.chip_of(core),
        latency_us=timing.latency_us,
        share=timing.latency_us / replicas / interval_us if interval_us else 0.0,
        kept_bytes=neff.memory.get("weights_kept", 0),
        streamed_bytes=neff.memory.get("weights_streamed", 0),
        sent_bytes=sum(size for name, size in _sizes(neff, "output").items() if name in later),
        load_us=loading.latency_us,
        first=neff.program.origins[0].name if neff.program.origins else "",
        last=neff.program.origins[-1].name if neff.program.origins else "",
    )


def _sizes(neff: Neff, kind: str) -> dict[str, int]:
    return {tensor.name: tensor.size_bytes for tensor in neff.program.tensors if tensor.kind == kind}
