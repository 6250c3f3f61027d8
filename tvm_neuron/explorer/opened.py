"""open_file: what a .neff or .so holds, as steps that pass tensors to each other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tvm_neuron.cli.compiled import open_compiled
from tvm_neuron.neff import Neff, Pipeline, Placement, TensorInfo
from tvm_neuron.profile.run import CoreRun, CpuPart, Part, run_of
from tvm_neuron.runtime import manifest, parts
from tvm_neuron.runtime.contents import virtual_machines

INPUTS = -1
Place = tuple[int, int]
"""A step (`INPUTS` makes the model's), and which of its results."""


@dataclass(frozen=True)
class Step:
    """A program on its cores, or an operator on the CPU (`cores` is empty). What is known at compile time is None."""

    name: str
    operator: str
    reads: Sequence[Place | None]
    writes: Sequence[TensorInfo]
    cores: Sequence[CoreRun]
    pipeline: Pipeline | None


@dataclass(frozen=True)
class Opened:
    """A file, or one bucket of it. `results` are the places of `outputs`."""

    name: str
    inputs: Sequence[TensorInfo]
    outputs: Sequence[TensorInfo]
    results: Sequence[Place | None]
    steps: Sequence[Step]
    placement: Mapping[str, Placement]


def open_file(path: str) -> list[Opened]:
    """All buckets of a file, the smallest first; a .neff is one.

    Raises:
        NeuronError: it is neither a .neff nor a library, or has more instructions than can be shown.
    """
    compiled = open_compiled(path)
    if not isinstance(compiled, Pipeline):
        count = len(virtual_machines(compiled))
        return [_bucket(compiled, number, f"bucket {number}" if count > 1 else "library") for number in range(count)]
    reads = [(INPUTS, index) for index in range(len(compiled.inputs))]
    step = Step(compiled.name, "", reads, compiled.outputs, run_of([compiled]).cores, compiled)
    results = [(0, index) for index in range(len(compiled.outputs))]
    placed = _placed(compiled.cores[0])
    return [Opened(compiled.name, compiled.inputs, compiled.outputs, results, [step], placed)]


def _bucket(library: Any, number: int, name: str) -> Opened:
    described, flow = manifest(library, number), manifest(library, number)["flow"]
    steps = [_step(*each) for each in zip(parts(library, number), flow["steps"], strict=True)]
    rows = (Placement(**row) for row in described["placement"])
    inputs, outputs = (_infos(described[key]) for key in ("inputs", "outputs"))
    return Opened(name, inputs, outputs, _places(flow["results"]), steps, {row.name: row for row in rows})


def _step(part: Part, told: Mapping[str, Any]) -> Step:
    reads, writes = _places(told["reads"]), _infos(told["writes"])
    if isinstance(part, CpuPart):
        return Step(part.name, told["operator"], reads, writes, (), None)
    return Step(part.name, "", reads, writes, run_of([part]).cores, part)


def _placed(core: Neff) -> dict[str, Placement]:
    return {row.name: row for row in core.placement}


def _places(rows: Sequence[Sequence[int] | None]) -> list[Place | None]:
    return [(row[0], row[1]) if row else None for row in rows]


def _infos(rows: Sequence[Mapping[str, Any]]) -> list[TensorInfo]:
    return [TensorInfo(row["name"], tuple(row["shape"]), row["dtype"]) for row in rows]
