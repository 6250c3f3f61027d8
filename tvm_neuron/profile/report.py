"""Report: all that is known of a compiled model's placement and cost, as a value."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from html import escape
from typing import Any

from tvm_neuron.errors import OptionError, from_extra
from tvm_neuron.hw import load_instance
from tvm_neuron.neff import Neff, Pipeline, Placement
from tvm_neuron.profile.end_to_end import EndToEnd, end_to_end
from tvm_neuron.profile.kernels import KernelUse, kernels_in
from tvm_neuron.profile.measure import Measurement, measure
from tvm_neuron.profile.pipeline import PipelineUse, pipeline_use
from tvm_neuron.profile.run import Part
from tvm_neuron.profile.spmd import SpmdUse
from tvm_neuron.profile.transfers import Transfer, transfers

PRECISION = ("fp32_cast", "fp32_cast_of")


@dataclass(frozen=True, slots=True)
class Layer:
    """One model operator on the NeuronCore: its time by the rule of `attribution`, and what it kept busy."""

    name: str
    op: str
    latency_us: float
    cycles: int
    share: float
    busy_us: Mapping[str, float]
    dram_bytes: int


@dataclass(frozen=True, slots=True)
class EngineUse:
    """One queue over all subgraphs: how long it was busy, and for whom it stood still how long.

    The transfers of a DMA queue wait side by side, so the sum of their stalls can exceed the whole time.
    """

    queue: str
    busy_us: float
    share: float
    stalls_us: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Subgraph:
    """One NEFF."""

    name: str
    latency_us: float
    cycles: int
    roofline_us: float
    bound_us: float
    pe_utilisation: float
    macs: int
    dram_bytes: int
    instructions: int
    weight_bytes: int
    sbuf_peak_bytes: int
    spill_bytes: int


@dataclass(frozen=True, kw_only=True)
class Report:
    """A compiled model: `placement` has a row for each operator; all other numbers are of the Neuron parts.

    Numbers are sums over the subgraphs, which run one after the other; `sbuf_peak_bytes` is the largest of theirs.
    `cycles` are those of the PE array's clock. `roofline_us` is what no program could beat: the larger of weights,
    inputs and outputs over the DRAM's bandwidth and multiply-accumulates over the array's peak. Nor could one beat
    `bound_us`, in which the engines also take results out of PSUM, reduce and compute, each operator in the way that
    suits it best, with the least instructions, between the first transfer and the last. `macs`, like `pe_utilisation`,
    are those that the model's operators ask for, and weights count without zeros that only suit the array.
    `macs_moved` is the share of the model's multiplications that does not stay on the CPU, as far as shapes are known.
    The time of CPU parts is not modelled. An operator that was fused into another's instructions has no layer of its
    own.
    `precision` holds the options that say what float32 became. A subgraph on several cores is as many programs, and a
    row of `pipelines`. `transfers` are between the host and the cores, whose time is not in the latency. `interval_us`
    is the time between two runs that follow each other: the latency, but of pipelines what their slowest stage takes.
    `kernels` are those written by hand, beside the compiler's time for the same.
    `end_to_end` is a request with the host, `end_to_end_us` its sum; the host's constants are no part of other numbers.
    `spmd` is there where several cores run one program and exchange tensors: numbers of programs are those of each,
    the latency has the exchanges, too.
    `parts` are the programs themselves, from which pages and timelines are made.
    """

    device: str
    precision: Mapping[str, Any]
    placement: tuple[Placement, ...]
    latency_us: float
    interval_us: float
    cycles: int
    roofline_us: float
    bound_us: float
    pe_utilisation: float
    macs: int
    macs_moved: float = 1.0
    dram_bytes: int
    dram_bytes_by_kind: Mapping[str, int]
    weight_bytes: int
    sbuf_peak_bytes: int
    spill_bytes: int
    instructions: int
    engines: tuple[EngineUse, ...]
    layers: tuple[Layer, ...]
    subgraphs: tuple[Subgraph, ...]
    pipelines: tuple[PipelineUse, ...] = ()
    transfers: tuple[Transfer, ...] = ()
    kernels: tuple[KernelUse, ...] = ()
    end_to_end: EndToEnd = field(default_factory=EndToEnd)
    spmd: SpmdUse | None = None
    parts: tuple[Part, ...] = field(default=(), repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """The report as dictionaries, lists and numbers, without `parts`."""
        found = asdict(replace(self, parts=())) | {"pipelines": [use.to_dict() for use in self.pipelines]}
        del found["parts"]
        return found | {"end_to_end_us": self.end_to_end_us}

    @property
    def end_to_end_us(self) -> float:
        """What a request takes with the host: see `end_to_end`, which has its parts."""
        return self.end_to_end.total_us

    def to_html(self, title: str = "", overlay: Any = None) -> str:
        """The report as a page that opens in any browser, also offline, with plots of every instruction.

        `overlay`, a `profile.page.overlay.Overlay`, adds columns and sections to it.

        Raises:
            OptionError: the extra `html` is not installed.
            ProgramError: a run has more instructions than can be shown.
        """
        with from_extra("html", "a report in HTML"):
            from tvm_neuron.profile.page.page import page
        return page(self.to_dict(), self.placement, self.parts, title, overlay)

    def _repr_html_(self) -> str:
        """The page in a frame of a notebook; without the extra, the headline and what is missing."""
        try:
            text = self.to_html()
        except OptionError as error:
            return f"<p>{escape(self.headline())}</p><p>{escape(str(error))}</p>"
        return f'<iframe srcdoc="{escape(text)}" style="width: 100%; height: 800px; border: 0"></iframe>'

    def to_json(self) -> str:
        """The report as text in JSON."""
        return json.dumps(self.to_dict(), indent=2)

    def placed(self, where: str) -> tuple[Placement, ...]:
        """The operators at `where`: "neuroncore", "cpu" or "compile time"."""
        return tuple(row for row in self.placement if row.where == where)

    def headline(self) -> str:
        """The report in one line."""
        places = {where: len(self.placed(where)) for where in dict.fromkeys(row.where for row in self.placement)}
        operators = ", ".join(f"{count} {where}" for where, count in places.items()) or "none"
        share = f"{self.macs_moved:.1%} of the multiplications neuroncore; " if self.macs_moved < 1 else ""
        on = f"{self.spmd.cores} cores of {self.spmd.instance}" if self.spmd else self.device
        return (
            f"operators: {operators}; {share}{_digits(self.latency_us)} us on {on} ({self.cycles:,} cycles; "
            f"roofline {_digits(self.roofline_us)} us, bound {_digits(self.bound_us)} us); "
            f"PE utilisation {self.pe_utilisation:.1%}; DRAM traffic {_digits(self.dram_bytes / 1e6)} MB"
        )


def make_report(
    placement: Iterable[Placement], parts: Sequence[Part], device: str = "", cpu_us: float | None = None,
    macs_moved: float = 1.0, spmd: SpmdUse | None = None,
) -> Report:  # fmt: skip
    """The report of a model that became `parts`, in the order in which they run; `cpu_us`: of those on the CPU.

    Raises:
        ProgramError: a program deadlocks.
    """
    compiled = [part for part in parts if isinstance(part, Pipeline)]
    neffs = [core for pipeline in compiled for core in pipeline.cores]
    measured = [measure(neff) for neff in neffs]
    pipelines = tuple(_pipelines(compiled, measured))
    total_us = sum(part.latency_us for part in measured)
    added_us = spmd.added_us if spmd else 0.0
    latency_us = total_us + added_us + sum(pipeline.link_us for pipeline in pipelines)
    moved = tuple(row for row in transfers(compiled) if not spmd or row.tensor not in spmd.kept)
    alone_us = total_us - sum(stage.latency_us for use in pipelines for stage in use.stages)
    subgraphs = tuple(_subgraph(neff, part) for neff, part in zip(neffs, measured, strict=True))
    peak_us = sum(part.macs_at_peak_us for part in measured)
    kinds = dict.fromkeys(kind for part in measured for kind in part.timing.dram_bytes_by_kind)
    return Report(
        device=neffs[0].device.name if neffs else device,
        precision=_precision(neffs),
        placement=tuple(placement),
        latency_us=latency_us,
        interval_us=alone_us + added_us + sum(pipeline.interval_us for pipeline in pipelines),
        cycles=sum(part.timing.cycles for part in measured),
        roofline_us=sum(part.roofline_us for part in measured),
        bound_us=sum(part.bound_us for part in measured),
        pe_utilisation=peak_us / total_us if total_us else 0.0,
        macs=sum(part.macs for part in measured),
        macs_moved=macs_moved,
        dram_bytes=sum(part.timing.dram_bytes for part in measured),
        dram_bytes_by_kind={k: sum(part.timing.dram_bytes_by_kind.get(k, 0) for part in measured) for k in kinds},
        weight_bytes=sum(subgraph.weight_bytes for subgraph in subgraphs),
        sbuf_peak_bytes=max((subgraph.sbuf_peak_bytes for subgraph in subgraphs), default=0),
        spill_bytes=sum(subgraph.spill_bytes for subgraph in subgraphs),
        instructions=sum(subgraph.instructions for subgraph in subgraphs),
        engines=_engines(measured, total_us),
        layers=_layers(neffs, measured, total_us),
        subgraphs=subgraphs,
        pipelines=pipelines,
        transfers=moved,
        kernels=tuple(kernels_in(neffs, measured)),
        end_to_end=end_to_end(compiled, moved, latency_us, cpu_us),
        spmd=spmd,
        parts=tuple(parts),
    )


def _pipelines(compiled: Sequence[Pipeline], measured: Sequence[Measurement]) -> Iterator[PipelineUse]:
    """Those of several cores."""
    at = 0
    for pipeline in compiled:
        timings = [part.timing for part in measured[at : at + len(pipeline.cores)]]
        at += len(pipeline.cores)
        if pipeline.replicas != (1,):
            first = pipeline.cores[0]
            instance = load_instance(str(first.options.get("instance", "")), first.device)
            yield pipeline_use(pipeline, timings, instance)


def _precision(neffs: Sequence[Neff]) -> dict[str, Any]:
    return {key: neff.options[key] for neff in neffs for key in PRECISION if key in neff.options}


def _digits(value: float) -> str:
    """At least three digits that mean something."""
    return f"{value:,.1f}" if value >= 100 else f"{value:.3g}"


def _subgraph(neff: Neff, part: Measurement) -> Subgraph:
    return Subgraph(
        name=neff.name,
        latency_us=part.latency_us,
        cycles=part.timing.cycles,
        roofline_us=part.roofline_us,
        bound_us=part.bound_us,
        pe_utilisation=part.pe_utilisation,
        macs=part.macs,
        dram_bytes=part.timing.dram_bytes,
        instructions=part.timing.instructions,
        weight_bytes=sum(array.nbytes for array in neff.weights.values()),
        sbuf_peak_bytes=neff.memory.get("sbuf_peak", 0),
        spill_bytes=neff.memory.get("spill", 0),
    )


def _engines(measured: Sequence[Measurement], total_us: float) -> tuple[EngineUse, ...]:
    queues = dict.fromkeys(queue for part in measured for queue in part.timing.busy_ps)
    rows = []
    for queue in queues:
        busy_us = sum(part.timing.busy_ps.get(queue, 0) for part in measured) / 1e6
        stalls: dict[str, float] = {}
        for part in measured:
            for other, ps in part.timing.stalls_ps.get(queue, {}).items():
                stalls[other] = stalls.get(other, 0.0) + ps / 1e6
        rows.append(EngineUse(queue, busy_us, busy_us / total_us if total_us else 0.0, stalls))
    return tuple(rows)


def _layers(neffs: Sequence[Neff], measured: Sequence[Measurement], total_us: float) -> tuple[Layer, ...]:
    rows = []
    for neff, part in zip(neffs, measured, strict=True):
        for index, origin in enumerate(neff.program.origins):
            timing = part.timing.origins.get(index)
            if timing is None:
                continue
            us = part.wall_us[index]
            busy = {engine: ps / 1e6 for engine, ps in timing.busy_ps.items()}
            cycles = round(us * neff.device.pe_clock_hz / 1e6)
            share = us / total_us if total_us else 0.0
            rows.append(Layer(origin.name, origin.op, us, cycles, share, busy, part.dram_bytes[index]))
    return tuple(rows)
