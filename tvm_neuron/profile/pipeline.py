"""PipelineUse: what several cores give that work on consecutive inputs at the same time, each on its stage.

The rules: a core takes its program's own time, in which it reads its inputs from the DRAM of its chip and writes its
outputs to that of the readers' chips. A tensor that leaves a chip passes every link of the chain up to its last reader,
while the cores compute other inputs; an input more follows when the slowest of these is through with the one before:
a core, a link, or the DRAM of a chip with all that its cores move. The latency is what one input takes through all.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tvm_neuron.hw import Instance
from tvm_neuron.neff import Neff, Pipeline
from tvm_neuron.sim import Timing, time_program

_US_PER_S = 1e6


@dataclass(frozen=True, slots=True)
class StageUse:
    """One core: `share` is that of the interval in which it works; `load_us` is what loading takes once."""

    core: int
    chip: int
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
    """One subgraph on its cores; `limit` is what the interval between two inputs is due to."""

    name: str
    instance: str
    interval_us: float
    latency_us: float
    load_us: float
    link_us: float  # of the latency
    limit: str
    stages: tuple[StageUse, ...]

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


def pipeline_use(pipeline: Pipeline, timings: Sequence[Timing], instance: Instance) -> PipelineUse:
    """The use of a pipeline whose cores take `timings`."""
    chips = [instance.chip_of(core) for core in range(len(pipeline.cores))]
    links = _links(pipeline, chips, instance)
    limits = {f"core {core}": timing.latency_us for core, timing in enumerate(timings)}
    limits |= {f"link from chip {chip}": us for chip, us in links.items()}
    for chip in dict.fromkeys(chips):
        moved = sum(timing.dram_bytes for timing, on in zip(timings, chips, strict=True) if on == chip)
        limits[f"DRAM of chip {chip}"] = moved * _US_PER_S / instance.chip_dram_bytes_per_second
    limit = max(limits, key=lambda key: limits[key])
    stages = tuple(
        _stage(core, chips[core], pipeline, timing, limits[limit]) for core, timing in enumerate(timings)
    )
    return PipelineUse(
        name=pipeline.name,
        instance=instance.name,
        interval_us=limits[limit],
        latency_us=sum(timing.latency_us for timing in timings) + sum(links.values()),
        load_us=max(stage.load_us for stage in stages),
        link_us=sum(links.values()),
        limit=limit,
        stages=stages,
    )


def _links(pipeline: Pipeline, chips: Sequence[int], instance: Instance) -> dict[int, float]:
    """Microseconds for which the link from each chip to the next is busy with one input."""
    device = pipeline.cores[0].device
    carried: dict[int, int] = {}
    for core, neff in enumerate(pipeline.cores):
        for name, size in _sizes(neff, "output").items():
            readers = [chips[c] for c, other in enumerate(pipeline.cores) if name in _sizes(other, "input")]
            for chip in range(chips[core], max(readers, default=0)):
                carried[chip] = carried.get(chip, 0) + size
    return {
        chip: device.dma_start_ns / 1e3 + size * _US_PER_S / instance.link_bytes_per_second
        for chip, size in carried.items()
    }


def _stage(core: int, chip: int, pipeline: Pipeline, timing: Timing, interval_us: float) -> StageUse:
    neff = pipeline.cores[core]
    later = {name for other in pipeline.cores[core + 1 :] for name in _sizes(other, "input")}
    loading = time_program(neff.loading, neff.device)
    return StageUse(
        core=core,
        chip=chip,
        latency_us=timing.latency_us,
        share=timing.latency_us / interval_us if interval_us else 0.0,
        kept_bytes=neff.memory.get("weights_kept", 0),
        streamed_bytes=neff.memory.get("weights_streamed", 0),
        sent_bytes=sum(size for name, size in _sizes(neff, "output").items() if name in later),
        load_us=loading.latency_us,
        first=neff.program.origins[0].name if neff.program.origins else "",
        last=neff.program.origins[-1].name if neff.program.origins else "",
    )


def _sizes(neff: Neff, kind: str) -> dict[str, int]:
    return {tensor.name: tensor.size_bytes for tensor in neff.program.tensors if tensor.kind == kind}
