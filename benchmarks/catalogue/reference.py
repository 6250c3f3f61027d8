"""What onnxruntime makes of an exported model, and how far from it bfloat16 and float32 may take the results."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import onnx
from numpy.typing import NDArray

from benchmarks.catalogue.entry import Arrays
from tests.models.agreement import EPSILON, ROUNDS_ELSEWHERE, relative_error, run_exactly
from tests.models.rounding import emulate_bfloat16

_FILE = "reference.npz"
FINER = 2.0**-13
"""float32 rounds 2**-16 as coarsely as bfloat16; three bits are left for sums in another order."""
LEAST_BOUND = 2e-5
"""Of float32: what the engines' functions may be off by, and sums of many terms."""


@dataclass(frozen=True)
class Reference:
    """Inputs; outputs in float32; of each float output, the relative L2 error that bfloat16 explains."""

    inputs: Arrays
    exact: Arrays
    bounds: dict[str, float]

    @classmethod
    def load(cls, folder: Path) -> Self:
        """What `keep_reference` wrote."""
        with np.load(folder / _FILE) as kept:
            parts: dict[str, dict[str, NDArray]] = {"in": {}, "out": {}, "bound": {}}
            for name in kept.files:
                kind, _, tensor = name.partition(":")
                parts[kind][tensor] = kept[name]
        return cls(parts["in"], parts["out"], {name: float(bound) for name, bound in parts["bound"].items()})

    def errors(self, outputs: list[NDArray]) -> dict[str, float]:
        """Of each output; of integers and booleans, the share that differs; infinite for another shape or NaNs."""
        return {name: _error(found, exact) for found, (name, exact) in zip(outputs, self.exact.items(), strict=True)}

    def worst(self, outputs: list[NDArray]) -> tuple[float, float]:
        """Error and bound of the output that is nearest to its bound, or farthest past it."""
        return self._worst(outputs, {name: max(bound, EPSILON) for name, bound in self.bounds.items()})

    def worst_in_float32(self, outputs: list[NDArray], model: onnx.ModelProto) -> tuple[float, float]:
        """The same of outputs that were computed in float32.

        What bfloat16 explains says nothing of a network whose outputs it makes noise; what explains errors there is how
        far the model's own go in onnxruntime if each number of its inputs is rounded once more.
        """
        rng = np.random.default_rng(0)
        moved = run_exactly(model, {name: _rounded(array, rng) for name, array in self.inputs.items()})
        own = self.errors(list(moved.values()))
        bounds = {
            name: max(bound * FINER, ROUNDS_ELSEWHERE * own[name], LEAST_BOUND) for name, bound in self.bounds.items()
        }
        return self._worst(outputs, bounds)

    def _worst(self, outputs: list[NDArray], bounds: dict[str, float]) -> tuple[float, float]:
        judged = [(error, bounds[name]) for name, error in self.errors(outputs).items()]
        return max(judged, key=lambda pair: pair[0] / pair[1])


def keep_reference(model: onnx.ModelProto, inputs: Arrays, folder: Path) -> None:
    """Runs it as it is and rounded to bfloat16 between all operators, and writes both beside it."""
    wanted = {value.name for value in model.graph.input}
    given = {name: array for name, array in inputs.items() if name in wanted}
    exact = run_exactly(model, given)
    rounded = run_exactly(emulate_bfloat16(model), given)
    bounds = {name: ROUNDS_ELSEWHERE * _error(rounded[name], array) + EPSILON for name, array in exact.items()}
    arrays = {f"in:{name}": array for name, array in given.items()}
    arrays |= {f"out:{name}": array for name, array in exact.items()}
    np.savez(folder / _FILE, **arrays, **{f"bound:{name}": np.float64(bound) for name, bound in bounds.items()})


def _rounded(array: NDArray, rng: np.random.Generator) -> NDArray:
    """Each float as one of its two neighbours in float32."""
    if array.dtype != np.float32:
        return array
    return np.nextafter(array, np.where(rng.random(array.shape) < 0.5, -np.inf, np.inf).astype(np.float32))


def _error(found: NDArray, exact: NDArray) -> float:
    if found.shape != exact.shape:
        return float("inf")
    if exact.dtype != np.float32:
        return float(np.mean(found != exact)) if exact.size else 0.0
    if not exact.size or not exact.any():
        return float(np.abs(found).max(initial=0))
    error = relative_error(found, exact)
    return error if np.isfinite(error) else float("inf")
