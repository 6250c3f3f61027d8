"""What AWS published of its own devices and compiler, beside the model: `python -m benchmarks.calibration`.

Nothing is fitted to a network: every constant is the chip's, with its source, and one rule serves all networks.

* The kernel is known instruction by instruction, so its program is timed by the clock as any other.
* Of the networks the schedule isn't known. Compilers of that time took one operator after the other, so the rule is:
  an operator takes as long as its busiest engine or its weights' transfer, and each of its engines' latency once; the
  next operator starts when it is done. That needs the costs of instructions and transfers only, no scheduler. What
  this compiler's schedule takes, which overlaps operators, stands beside it; it may be quicker than what AWS measured.
* What was measured end to end has a host in it, of which the model knows the link only: there the model must be below.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod

import onnx

from benchmarks.mamba import mamba
from benchmarks.table import CONSOLE, make_table
from tests.codegen.transformers import Encoder
from tvm_neuron import neff, relay, runtime
from tvm_neuron.codegen.sync import synchronise
from tvm_neuron.frontend.sample_models import light_network
from tvm_neuron.hw import Device, load_device
from tvm_neuron.isa import DramTile, Instruction
from tvm_neuron.neff import Neff
from tvm_neuron.program import Program
from tvm_neuron.sim import time_program
from tvm_neuron.sim.clock import clock_hz

LARGEST_ERROR = 0.15
_BERT_BASE = partial(Encoder, hidden=768, heads=12, rows=128, layers=12)


@dataclass(frozen=True)
class Calibrated:
    """One measurement and what the model says; `scheduled_us` is what this compiler's own schedule takes."""

    chip: str
    what: str
    unit: str
    measured: float
    modelled: float
    rule: str
    scheduled_us: float | None = None
    is_upper_bound: bool = False

    @property
    def error(self) -> float:
        """Relative to what was measured."""
        return self.modelled / self.measured - 1

    @property
    def is_kept(self) -> bool:
        """Whether the error is small enough, or the bound respected."""
        return self.error <= 0 if self.is_upper_bound else abs(self.error) <= LARGEST_ERROR


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
    """A network that AWS measured on one core."""

    chip: str
    what: str
    measured_us: float
    make: Callable[[], onnx.ModelProto]
    is_end_to_end: bool = False

    def compile(self) -> Neff:
        """The one NEFF of it."""
        mod, params = relay.frontend.from_onnx(self.make())
        (data,) = runtime.neffs(relay.build(mod, target=f"neuron/{self.chip}", params=params)).values()
        return neff.read(data)

    def row(self, compiled: Neff) -> Calibrated:
        """Beside what the model says."""
        program, device = compiled.program, compiled.device
        host_us = _host_us(program, device) if self.is_end_to_end else 0.0
        rule = "operators in turn" + (" and the host's link" if self.is_end_to_end else "")
        return Calibrated(
            self.chip, self.what, "us", self.measured_us, operators_in_turn_us(program, device) + host_us, rule,
            time_program(program, device).latency_us + host_us, self.is_end_to_end,
        )  # fmt: skip


NETWORKS = (
    Network("inf1", "ResNet-50, batch 1, on the device", 2709.6, partial(light_network, "resnet50")),
    Network("inf1", "BERT-base, 128 tokens, batch 1", 7900, lambda: _BERT_BASE(batch=1).model()),
    Network("inf1", "BERT-base, 128 tokens, batch 3", 10500, lambda: _BERT_BASE(batch=3).model()),
    Network("inf2", "BERT-base, 128 tokens, batch 1", 1050, lambda: _BERT_BASE(batch=1).model()),
    Network("inf2", "ResNet-50, batch 1, end to end", 830, partial(light_network, "resnet50"), is_end_to_end=True),
)
CACHED_MB = (10.6, 12.8)  # weights a core: of the largest model that stayed cached, and of the smallest that did not


def kernel_rows() -> list[Calibrated]:
    """AWS's Mamba kernel on trn1."""
    device = load_device("trn1")
    timing = time_program(synchronise(mamba(), device), device)
    active = 100 * timing.busy_ps["pool"] / timing.total_ps
    return [
        Calibrated("trn1", "Mamba kernel, version 1", "us", 2340, timing.latency_us, "clock"),
        Calibrated("trn1", "Mamba kernel: Vector engine active", "%", 92.16, active, "clock"),
    ]


def operators_in_turn_us(program: Program, device: Device) -> float:
    """The sum over operators of their busiest engine's time, and of each of their engines' latency once.

    Transfers of tensors that the compiler itself puts into DRAM don't count: they are its schedule's, not the model's.
    """
    busy: dict[tuple[int, str], float] = {}
    latency: dict[tuple[int, str], float] = {}
    for counts, instruction in program.instructions():
        if instruction.engine == "dma" and _is_scratch(program, instruction):
            continue
        at, cost = (instruction.origin, instruction.engine), instruction.cost(device)
        cycle_us = 1e6 / clock_hz(device, instruction.engine)
        busy[at] = busy.get(at, 0.0) + prod(counts) * cost.busy_cycles * cycle_us
        latency[at] = cost.latency_cycles * cycle_us
    busiest: dict[int, float] = {}
    for (origin, _), time in busy.items():
        busiest[origin] = max(busiest.get(origin, 0.0), time)
    return sum(busiest.values()) + sum(latency.values())


def _is_scratch(program: Program, transfer: Instruction) -> bool:
    return any(program.tensors[t.tensor].kind == "scratch" for _, _, t in transfer.tiles() if isinstance(t, DramTile))


def _host_us(program: Program, device: Device) -> float:
    carried = sum(tensor.size_bytes for tensor in program.tensors if tensor.kind in ("input", "output"))
    return device.host_call_ns / 1e3 + carried * 1e6 / device.host_bytes_per_second


def fits(rows: Sequence[tuple[Network, Neff]]) -> list[Fit]:
    """What the measurements say of inf1's numbers that AWS doesn't."""
    device = load_device("inf1")
    inf1 = [(network, compiled.program) for network, compiled in rows if network.chip == device.name]

    def is_near(gb_per_second: float) -> bool:
        other = replace(device, dram_bytes_per_second=round(gb_per_second * 1e9))
        errors = [operators_in_turn_us(program, other) / network.measured_us - 1 for network, program in inf1]
        return max(map(abs, errors)) <= LARGEST_ERROR

    near = [tenth / 10 for tenth in range(150, 350) if is_near(tenth / 10)]
    return [
        Fit("inf1: DRAM bandwidth of one core", "GB/s", min(near), max(near), device.dram_bytes_per_second / 1e9),
        Fit("inf1: SBUF, from which weights stay cached", "MB", *CACHED_MB, device.sbuf_bytes / 1e6),
    ]


def measure() -> tuple[list[Calibrated], list[Fit]]:
    """All of it."""
    compiled = [(network, network.compile()) for network in NETWORKS]
    return [*kernel_rows(), *(network.row(neff) for network, neff in compiled)], fits(compiled)


def show(rows: Sequence[Calibrated], fitted: Sequence[Fit]) -> None:
    """The tables."""
    columns = ("chip", "what", "measured>", "modelled>", "error>", "by", "this compiler>", "within")
    table = make_table("Measured by AWS and modelled, one core", *columns)
    for row in rows:
        table.add_row(
            row.chip, row.what, f"{row.measured:,.1f} {row.unit}", f"{row.modelled:,.1f} {row.unit}",
            f"{row.error:+.1%}", row.rule, "" if row.scheduled_us is None else f"{row.scheduled_us:,.1f} us",
            ("below it" if row.is_upper_bound else f"{LARGEST_ERROR:.0%}") + (": yes" if row.is_kept else ": NO"),
        )  # fmt: skip
    CONSOLE.print(table)
    table = make_table("What the same measurements say of a chip's numbers", "number", "from>", "to>", "taken>")
    for fit in fitted:
        table.add_row(fit.what, f"{fit.low:,.1f} {fit.unit}", f"{fit.high:,.1f} {fit.unit}", f"{fit.taken:,.1f}")
    CONSOLE.print(table)


if __name__ == "__main__":
    show(*measure())
