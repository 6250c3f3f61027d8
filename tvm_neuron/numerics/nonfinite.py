"""first_of: the operators that first made NaN or infinity of finite operands, in each of the runs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.numerics.emulate import Emulation
from tvm_neuron.numerics.model import Model
from tvm_neuron.numerics.rows import Nonfinite, OperatorError

IN_FLOAT32 = "in float32"
ROUNDED = "with the core's roundings"
ALONE = "on the core, of exact inputs"
GROWN = "on the core, in the program up to here"
WHOLE = "on the core, in the whole program"
Values = Mapping[str, NDArray[Any]]


def first_of(
    model: Model, emulated: Emulation, rows: Sequence[OperatorError], outputs: Values
) -> Iterator[Nonfinite]:
    """At most one for each kind of run; those of the core only for what is finite in float32."""
    for run, values in ((IN_FLOAT32, emulated.exact), (ROUNDED, emulated.grown)):
        yield from _first_made(model, run, values)
    for run, field in ((ALONE, "alone"), (GROWN, "grown")):
        for row in rows:
            found = getattr(row, field)
            if found is not None and found.stray:
                yield Nonfinite(run, row.name, row.op, row.tensor, found.nans, found.stray - found.nans)
                break
    for one in model.operators:
        for name in one.makes:
            if name in outputs and (bad := _counts(outputs[name])) != _counts(emulated.exact[name]):
                yield Nonfinite(WHOLE, one.name, one.op, name, *bad)
                return


def _first_made(model: Model, run: str, values: Values) -> Iterator[Nonfinite]:
    for one in model.operators:
        if any(sum(_counts(values[name])) for name in one.reads if name in values):
            continue
        for name in one.makes:
            if sum(bad := _counts(values[name])):
                yield Nonfinite(run, one.name, one.op, name, *bad)
                return


def _counts(array: NDArray[Any]) -> tuple[int, int]:
    """NaNs and infinities."""
    if array.dtype.kind not in "fV":
        return 0, 0
    values = np.asarray(array, np.float32)
    return int(np.isnan(values).sum()), int(np.isinf(values).sum())
