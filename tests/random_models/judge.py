"""Judges what the compiler and the hardware model make of a random model."""

import re
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

import tvm_neuron
from tests.random_models.model import RandomModel
from tests.random_models.rounding import amplitude, is_grid, spread
from tests.random_models.value import Value
from tvm_neuron import BuildOptions, relay
from tvm_neuron.errors import (
    DeviceError,
    InternalError,
    ModelError,
    OptionError,
    PlacementError,
    PlacementWarning,
    RangeError,
)

REFUSALS = (ModelError, OptionError, PlacementError, DeviceError, RangeError)
"""What a model may meet; all else is a defect."""
_SIGMA = 10.0
"""Errors of some thousand elements reach 4.5 of their deviations; a deviation from so few samples may be half of it."""


@dataclass(frozen=True)
class Outcome:
    """`result` is passed, refused, wrong or internal; the runner adds crashed and hanging. Counts are of operators."""

    result: str
    reason: str = ""
    where: str = ""  # of an internal error
    on_core: int = 0
    on_cpu: int = 0
    reasons: dict[str, int] = field(default_factory=dict)  # why operators run on the CPU

    @property
    def group(self) -> str:
        """The reason without names and numbers, so that the same defect of many models is one."""
        text = re.sub(r"'[^']*'", "'...'", self.reason)
        return re.sub(r"\d[\d.e+-]*", "N", text)[:160] + (f" @ {self.where}" if self.where else "")


def judge(model: RandomModel, chip: str) -> Outcome:
    """Builds the model, runs it, compares every output."""
    counts: dict[str, int] = {}
    reasons: Counter[str] = Counter()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", PlacementWarning)
        try:
            mod, params = relay.frontend.from_onnx(model.proto())
            options = BuildOptions(fp32_cast=model.mode, on_defect=_raise)
            library = relay.build(mod, target=f"neuron/{chip}", params=params, options=options)
            report = tvm_neuron.report(library)
            counts = {"on_core": len(report.placed("neuroncore")), "on_cpu": len(report.placed("cpu"))}
            reasons = Counter(row.reason for row in report.placed("cpu"))
            beaten = [part.name for part in report.subgraphs if part.bound_us > part.latency_us]
            executor = relay.graph_executor.GraphModule(library["default"](tvm_neuron.device()))
            executor.run(**model.feeds())
            outputs = [executor.get_output(number).numpy() for number in range(len(model.outputs))]
        except REFUSALS as error:
            return Outcome("refused", f"{type(error).__name__}: {error}", **counts)
        except Exception as error:
            return Outcome("internal", _message(error), _place(error), **counts)
    if said:
        return Outcome("internal", f"{said[0].category.__name__}: {said[0].message}", **counts)
    found = [what for name, got in zip(model.outputs, outputs, strict=True) if (what := wrong(model, name, got))]
    found += [f"{name} takes less than its bound" for name in beaten]
    return Outcome("wrong" if found else "passed", "; ".join(found), **counts, reasons=dict(reasons))


def _raise(error: InternalError) -> str:
    """A defect ends the build here, which for a user would go on."""
    raise error


def _message(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}" + (f" ... {lines[-1]}" if len(lines) > 1 else "")


def _place(error: BaseException) -> str:
    """The last of our functions that the error went through."""
    while error.__cause__ is not None:
        error = error.__cause__
    ours = [frame for frame in traceback.extract_tb(error.__traceback__) if "tvm_neuron" in frame.filename]
    if not ours:
        return ""
    return f"{ours[-1].filename.split('tvm_neuron/')[-1]}:{ours[-1].name}"


def wrong(model: RandomModel, name: str, got: NDArray) -> str:
    """What is wrong with an output; nothing if it is right."""
    value = model.values[name]
    if got.shape != value.shape or str(got.dtype) != value.dtype:
        return f"{name} is {got.dtype}{list(got.shape)}, not {value.dtype}{list(value.shape)}"
    if not got.size:
        return ""
    wide, exact = got.astype(np.float64), value.exact.astype(np.float64)
    with np.errstate(invalid="ignore"):
        apart = np.where(got == value.exact, 0.0, np.abs(wide - exact))
    excess = apart - tolerance(value, model.mode)
    if (excess <= 0).all():
        return ""
    bad = ~(excess <= 0)
    place = np.unravel_index(int(np.argmax(np.where(np.isnan(excess), np.inf, excess))), got.shape)
    at = [int(i) for i in place]
    allowed = tolerance(value, model.mode)[place]
    return (
        f"{name} {value.dtype}{list(value.shape)}: {int(bad.sum())} of {bad.size} elements wrong, most at {at}: "
        f"{got[place]} for {value.exact[place]}, allowed {allowed:.2g}"
    )


def tolerance(value: Value, mode: str) -> NDArray:
    """By how much each element may be off. What is known exactly may not be off at all."""
    if value.samples is None:
        return np.zeros(value.shape)
    allowed = _SIGMA * spread(value.samples, value.exact)
    if value.is_float:  # what is smaller than normal may as well be 0
        allowed = allowed + float(np.finfo(value.exact.dtype).tiny)
    if not value.is_float or is_grid(value.exact):
        return allowed
    size = amplitude(value.exact, mode, value.is_constant)
    return allowed + 2 * size + np.sqrt(np.mean(size**2)) / 2
