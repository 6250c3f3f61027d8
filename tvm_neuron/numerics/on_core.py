"""run_on_core: a model compiled and run on the hardware model; and how its program rounds each operator."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import onnx
import tvm
from numpy.typing import NDArray

from tvm_neuron import relay
from tvm_neuron.codegen.options import BuildOptions
from tvm_neuron.errors import InputWarning, PlacementWarning
from tvm_neuron.frontend import from_onnx
from tvm_neuron.isa.dtypes import DTYPES
from tvm_neuron.neff import Pipeline
from tvm_neuron.numerics.model import Arrays
from tvm_neuron.profile import Report
from tvm_neuron.runtime import report

EXACT = "float32"
_SHORT = {"bfloat16": "bf16", "float16": "fp16"}


@dataclass(frozen=True, slots=True)
class Rounding:
    """As what the PE array multiplies for an operator, and as what its result, or what it needs on the way, is kept."""

    multiplied: str = EXACT
    kept: str = EXACT

    @property
    def coarsest(self) -> str:
        """The dtype of fewer bits."""
        return _coarser(self.multiplied, self.kept)

    def __str__(self) -> str:
        """As a reader sees it."""
        said = {"multiplies": self.multiplied, "keeps": self.kept}
        return ", ".join(f"{what} {_SHORT[dtype]}" for what, dtype in said.items() if dtype != EXACT) or EXACT


@dataclass(frozen=True)
class OnCore:
    """The outputs by name, and the report of the library that made them."""

    outputs: Arrays
    report: Report

    def roundings(self) -> dict[str, Rounding]:
        """How the programs round, by operator: the coarsest of each kind among its instructions."""
        found: dict[str, Rounding] = {}
        cores = [core for part in self.report.parts if isinstance(part, Pipeline) for core in part.cores]
        for core in cores:
            for _, instruction in core.program.instructions():
                name = core.program.origins[instruction.origin].name
                old, new = found.get(name, Rounding()), _rounding(instruction)
                found[name] = Rounding(_coarser(old.multiplied, new.multiplied), _coarser(old.kept, new.kept))
        return found


def run_on_core(model: onnx.ModelProto, inputs: Mapping[str, NDArray[Any]], options: BuildOptions) -> OnCore:
    """Compiles a model and runs it once.

    Raises:
        NeuronError: it can't be imported, compiled or run.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PlacementWarning)  # a part may well be for the CPU
        warnings.simplefilter("ignore", InputWarning)
        mod, params = from_onnx(model)
        library = relay.build(mod, params=params, options=options)
        executor = library["default"](tvm.cpu())
        executor.run(**inputs)
    outputs = {info.name: executor.get_output(at).numpy() for at, info in enumerate(executor.outputs)}
    return OnCore(outputs, report(library))


def _rounding(instruction: Any) -> Rounding:
    """Of one instruction: the PE array's operands; elsewhere a float tile that is written coarser than it is read."""
    tiles = instruction.tiles()
    if instruction.engine == "pe":
        return Rounding(multiplied=_coarser(EXACT, *(tile.dtype for _, kind, tile in tiles if kind.role == "reads")))
    if instruction.engine == "dma":  # from the inputs: the cast of an operand
        return Rounding()
    read = [tile.dtype for _, kind, tile in tiles if kind.role == "reads"]
    written = _coarser(EXACT, *(tile.dtype for _, tile in instruction.destinations))
    return Rounding(kept=written) if read and _bits(written) < max(map(_bits, read)) else Rounding()


def _coarser(*dtypes: str) -> str:
    return min(dtypes, key=_bits)


def _bits(dtype: str) -> int:
    """Of the fraction; of what is no float, those of float32."""
    return min(ml_dtypes.finfo(DTYPES[dtype]).nmant, 23) if "float" in dtype else 23
