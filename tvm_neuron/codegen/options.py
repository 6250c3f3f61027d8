"""What a user can choose about a build."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from tvm_neuron.codegen.precision import Precisions


def _ignore(_stage: str) -> None:
    """The default listener: nobody is told of stages."""


@dataclass(frozen=True, kw_only=True)
class BuildOptions:
    """How to build. `device` is a chip's name (`neuron/inf1`) or the path of a device description.

    `fp32_cast` says what float32 becomes (a key of `FP32_CAST`), `fp32_cast_of` the same for operators whose name in
    the model fits a pattern, as `{"layer3*": "none"}`. `fast_relayout` lets the PE array transpose tiles; without it
    data change places by DMA alone, which is slower. `saturate_infinity` clamps infinities to the largest numbers
    before arithmetic makes NaN of them. `must_compile` makes an operator on the CPU an error. `minimum_segment_size`
    keeps every part of at least so many operators on the NeuronCore and moves smaller ones beside CPU operators to the
    CPU; without it, parts between CPU operators are weighed by the time they gain. `on_cpu` are patterns over
    operators' names: what fits stays on the CPU. `on_stage` is called with the name of each stage as it begins.

    `pipeline_cores` cuts each subgraph over so many cores, which work on consecutive inputs at the same time; there,
    weights stay in SBUF between runs as far as they fit. `static_weights` does the same on one core, and makes it an
    error if some don't fit.

    `dynamic_batch` makes a library that takes any number of rows: more are split, what is left over is padded. It is
    for models whose rows do not depend on each other.

    Raises:
        OptionError: there is no such precision.
    """

    device: str = "neuron/inf1"
    fp32_cast: str = "all"
    fp32_cast_of: Mapping[str, str] = field(default_factory=dict)
    fast_relayout: bool = True
    saturate_infinity: bool = False
    must_compile: bool = False
    minimum_segment_size: int | None = None
    on_cpu: tuple[str, ...] = ()
    pipeline_cores: int = 1
    dynamic_batch: bool = False
    static_weights: bool = False
    on_stage: Callable[[str], None] = _ignore

    def to_dict(self) -> dict[str, Any]:
        """The choices as plain values, as the manifest and the NEFF hold them."""
        return {
            "device": self.device,
            "fp32_cast": self.fp32_cast,
            "fp32_cast_of": dict(self.fp32_cast_of),
            "fast_relayout": self.fast_relayout,
            "saturate_infinity": self.saturate_infinity,
            "must_compile": self.must_compile,
            "minimum_segment_size": self.minimum_segment_size,
            "pipeline_cores": self.pipeline_cores,
            "dynamic_batch": self.dynamic_batch,
            "static_weights": self.static_weights,
            "on_cpu": list(self.on_cpu),
        }

    @property
    def precisions(self) -> Precisions:
        """What float32 becomes, operator by operator."""
        return Precisions(self.fp32_cast, self.fp32_cast_of)

    def __post_init__(self) -> None:
        _ = self.precisions  # refuses what is no precision


_current: ContextVar[BuildOptions | None] = ContextVar("tvm_neuron_build_options", default=None)


def current_options() -> BuildOptions | None:
    """The options of the innermost `build_options` block."""
    return _current.get()


@contextmanager
def build_options(options: BuildOptions) -> Iterator[None]:
    """Builds inside the `with` block use `options`; the way to give them to `tvm.compile`."""
    token = _current.set(options)
    try:
        yield
    finally:
        _current.reset(token)
