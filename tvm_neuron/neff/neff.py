"""Neff: a compiled subgraph as a value."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.errors import NeffError
from tvm_neuron.hw import Device
from tvm_neuron.isa.dtypes import DTYPES
from tvm_neuron.program import Node, Program

MODEL_DTYPES = (*DTYPES, "bool", "int64", "float64", "uint16", "uint32", "uint64")


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """An input or output as the model sees it; in device memory its dtype may be another."""

    name: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class Placement:
    """Where one operator of the model runs ("neuroncore", "cpu" or "compile time"), and why not on the NeuronCore."""

    name: str
    op: str
    where: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Neff:
    """All that is known of a compiled subgraph.

    `inputs` and `outputs` are the program's tensors of that kind, in order and by the same names. `weights` holds one
    array for each of its weight tensors, with that tensor's shape and dtype. `memory` is the static memory report in
    bytes: "weights", "activations", "spill", "sbuf_peak" and others. `macs` are the multiply-accumulates that the
    operators ask for, without those that the program only does to get them done, `least_ps` the time for which some
    engine is at work on them in any program; None if nobody told. `repeats` says of which weights each value is there
    several times to suit the array, and how often. `prologue` is what runs once, when the program is loaded: it brings
    into SBUF what stays there for all runs.

    Raises:
        NeffError: the tables contradict each other.
    """

    name: str
    program: Program
    device: Device
    weights: Mapping[str, NDArray[Any]] = field(repr=False, compare=False)
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    options: Mapping[str, Any]
    compiler_version: str
    placement: tuple[Placement, ...] = ()
    memory: Mapping[str, int] = field(default_factory=dict)
    macs: int | None = None
    least_ps: int | None = None
    repeats: Mapping[str, int] = field(default_factory=dict)
    prologue: tuple[Node, ...] = ()

    @property
    def loading(self) -> Program:
        """What runs once, as a program over the same tensors."""
        return self.program.with_body(self.prologue)

    def __post_init__(self) -> None:
        for kind, infos in (("input", self.inputs), ("output", self.outputs)):
            tensors = [tensor for tensor in self.program.tensors if tensor.kind == kind]
            # on the device a number is a tensor of one element
            if [(t.name, t.shape or (1,)) for t in tensors] != [(i.name, i.shape or (1,)) for i in infos]:
                raise NeffError(f"NEFF '{self.name}': the {kind}s of the model are not those of its program")
            for info in infos:
                if info.dtype not in MODEL_DTYPES:
                    raise NeffError(f"NEFF '{self.name}': {kind} '{info.name}' has unknown dtype '{info.dtype}'")
        expected = {t.name: (t.shape, DTYPES[t.dtype]) for t in self.program.tensors if t.kind == "weight"}
        count = sum(t.kind == "weight" for t in self.program.tensors)
        if count != len(expected):
            raise NeffError(f"NEFF '{self.name}': two weights share a name")
        if not self.repeats.keys() <= expected.keys():
            names = sorted(self.repeats.keys() - expected.keys())
            raise NeffError(f"NEFF '{self.name}': it has no weights of which values could repeat: {', '.join(names)}")
        given = {name: (array.shape, np.dtype(array.dtype)) for name, array in self.weights.items()}
        if given != expected:
            names = sorted(key for key in {*given, *expected} if given.get(key) != expected.get(key))
            raise NeffError(f"NEFF '{self.name}': weights differ from the program's table: {', '.join(names)}")
