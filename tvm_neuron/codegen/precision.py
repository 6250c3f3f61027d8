"""Precision: what float32 becomes on a NeuronCore, for the whole model (`--fp32-cast`) and for single operators."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from tvm_neuron.errors import OptionError
from tvm_neuron.isa.dtypes import MATMUL_DTYPES, device_dtype


@dataclass(frozen=True)
class Precision:
    """How the float32 tensors of an operator are kept, and as what the PE array multiplies them.

    Tensors that are float16 or bfloat16 in the model stay so, as do integers and booleans that nothing multiplies.
    Engines compute, and PSUM accumulates, in float32.
    """

    stored: str
    multiplied: str

    def dtype_of(self, model_dtype: str) -> str:
        """In which dtype a tensor of the model is kept."""
        return self.stored if model_dtype == "float32" else device_dtype(model_dtype)

    def operand_dtype(self, model_dtype: str) -> str:
        """As which dtype the PE array reads such a tensor."""
        return model_dtype if model_dtype in MATMUL_DTYPES else self.multiplied


FP32_CAST: dict[str, Precision] = {
    "all": Precision("bfloat16", "bfloat16"),
    "all-fp16": Precision("float16", "float16"),
    "matmult": Precision("float32", "bfloat16"),
    "matmult-bf16": Precision("float32", "bfloat16"),
    "matmult-fp16": Precision("float32", "float16"),
    "none": Precision("float32", "float32"),
}
"""By name as in `--fp32-cast`. `matmult` is `matmult-bf16`, since data change places without being rounded."""


@dataclass(frozen=True)
class Precisions:
    """The mode of the whole model, and those of operators by patterns over their names (`layer3*`); the last fits.

    Raises:
        OptionError: there is no such mode.
    """

    mode: str = "all"
    by_name: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for what, mode in (("fp32_cast", self.mode), *((f"fp32_cast of '{p}'", m) for p, m in self.by_name.items())):
            if mode not in FP32_CAST:
                raise OptionError(f"{what} is '{mode}', which is no precision: take one of {', '.join(FP32_CAST)}")

    def mode_of(self, operator: str) -> str:
        """The mode's name for the model's operator of that name."""
        fitting = [mode for pattern, mode in self.by_name.items() if fnmatchcase(operator, pattern)]
        return fitting[-1] if fitting else self.mode

    def of(self, operator: str) -> Precision:
        """The precision of the model's operator of that name."""
        return FP32_CAST[self.mode_of(operator)]


DEFAULT = Precisions()
