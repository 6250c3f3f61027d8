"""What a comparison found: of operators, outputs, values that are not finite and other precisions; in sentences."""

from dataclasses import dataclass

from tvm_neuron.numerics.measure import Apart


@dataclass(frozen=True, slots=True)
class OperatorError:
    """One operator, by its first tensor `tensor` of shape `shape`.

    `rounds` says what its instructions round in the whole program. `alone` is its error on exact inputs, compiled by
    itself, its result kept as in the whole; `alone_explained` what the same roundings give in NumPy. `grown_explained`
    is the error here with the roundings of all operators until here, `grown` that of the core, of the program compiled
    up to here, where that was done. None: it did not run on the core, or was not tried.
    """

    name: str
    op: str
    where: str
    tensor: str
    shape: tuple[int, ...]
    rounds: str
    alone: Apart | None
    alone_explained: Apart
    grown: Apart | None
    grown_explained: Apart
    is_explained_alone: bool
    is_explained_grown: bool = True

    @property
    def is_explained(self) -> bool:
        """Whether roundings explain its error, alone and in the program up to it."""
        return self.is_explained_alone and self.is_explained_grown


@dataclass(frozen=True, slots=True)
class Output:
    """An output of the whole model; `bound` is the error that roundings explain."""

    name: str
    found: Apart
    explained: Apart
    bound: float
    is_explained: bool


@dataclass(frozen=True, slots=True)
class Nonfinite:
    """The operator that made the first NaN or infinity of finite operands, in one of the runs."""

    run: str
    name: str
    op: str
    tensor: str
    nans: int
    infinities: int


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The model with another precision for some operators: its time, and the error of the output that is farthest."""

    fp32_cast_of: dict[str, str]
    latency_us: float
    more_us: float
    error: float


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence; `is_defect` if roundings don't explain what it tells."""

    text: str
    is_defect: bool = False
