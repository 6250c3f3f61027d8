"""What a user can choose about a build."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, replace
from math import inf
from numbers import Integral, Real
from typing import Any

from tvm_neuron.codegen.bundle import write_bundle
from tvm_neuron.codegen.precision import Precisions
from tvm_neuron.codegen.tuning import USUAL, Tuning
from tvm_neuron.errors import InternalError, OptionError
from tvm_neuron.hw import check_instance
from tvm_neuron.runtime import host

LEVELS = (1, 2, 3)


def _ignore(_stage: str) -> None:
    """The default listener: nobody is told of stages."""


@dataclass(frozen=True, kw_only=True)
class BuildOptions:
    """How to build. `device` is a chip's name (`neuron/inf1`) or the path of a device description.

    `fp32_cast` says what float32 becomes (a key of `FP32_CAST`), `fp32_cast_of` the same for operators whose name in
    the model fits a pattern, as `{"layer3*": "none"}`. `fast_relayout` lets the PE array transpose tiles; without it
    data change places by DMA alone, which is slower. `saturate_infinity` clamps infinities to the largest numbers
    before arithmetic makes NaN of them. `must_compile` makes an operator on the CPU an error, and a defect of the
    compiler too. `minimum_segment_size` keeps every part of at least so many operators on the NeuronCore and moves
    smaller ones beside CPU operators to the CPU; without it, parts between CPU operators are weighed by the time they
    gain. `on_cpu` are patterns over operators' names: what fits stays on the CPU. `host_cpu` says which instructions
    the CPU parts may use: `baseline`, what every processor of the architecture has (and for x86-64, where much is
    computed, those of `x86-64-v3` where the processor that runs it has them), a level `x86-64-v2`, `-v3` or `-v4`, or
    `native`, the highest level of this machine; a library refuses to run where they are missing.

    `on_stage` is called with the name of each stage as it begins, `on_defect` with each defect of the compiler; what it
    returns says where that is written down now. A build goes on after a defect: the operators at fault run on the CPU.

    `pipeline_cores` cuts each subgraph over so many cores, which work on consecutive inputs at the same time; there,
    weights stay in SBUF between runs as far as they fit. `instance` names the machine whose links between chips count
    (the largest with such chips if it is empty). `static_weights` does the same on one core, and makes it an
    error if some don't fit.

    `dynamic_batch` makes a library that takes any number of rows: more are split, what is left over is padded. It is
    for models whose rows do not depend on each other.

    `optlevel` 1 spends no time on what can be left out: it weighs parts without compiling them on trial, and kernels
    that run in tiles have one order by rule; from 2 on a few others are tried. 3 searches: each subgraph is
    compiled with several tunings and all orders, and the program that is quickest by the cost model is taken; a build
    takes several times as long. `time_budget_seconds` ends all kinds of trials when it is used up, counted from the
    start of the build; what a build can't do without is always done. `tuning` is where a search starts. The
    programs of a search are made in so many `processes` of Ray at once, the same ones in any number; without a number,
    in one for each core where the extra `sweep` is installed and a program takes ten seconds, else here in turn.

    >>> from tvm_neuron import BuildOptions
    >>> BuildOptions(optlevel=7)
    Traceback (most recent call last):
    tvm_neuron.errors.OptionError: optlevel is 7; take one of 1, 2, 3

    Raises:
        OptionError: there is no such precision, level or number of cores or processes, or the time is not positive.
    """

    device: str = "neuron/inf1"
    fp32_cast: str = "all"
    fp32_cast_of: Mapping[str, str] = field(default_factory=dict)
    fast_relayout: bool = True
    saturate_infinity: bool = False
    must_compile: bool = False
    minimum_segment_size: int | None = None
    on_cpu: tuple[str, ...] = ()
    host_cpu: str = host.BASELINE
    pipeline_cores: int = 1
    dynamic_batch: bool = False
    instance: str = ""
    static_weights: bool = False
    optlevel: int = 2
    time_budget_seconds: float | None = None
    tuning: Tuning = USUAL
    processes: int | None = None
    on_stage: Callable[[str], None] = _ignore
    on_defect: Callable[[InternalError], str] = write_bundle
    ends_at: float = inf  # of time.monotonic(); see `begun`

    def begun(self) -> "BuildOptions":
        """The same from now on: the time budget starts."""
        if self.time_budget_seconds is None or self.ends_at != inf:
            return self
        return replace(self, ends_at=time.monotonic() + self.time_budget_seconds)

    def has_time(self, seconds: float = 0.0) -> bool:
        """Whether that much of the time budget is left."""
        return time.monotonic() + seconds < self.ends_at

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
            "instance": self.instance,
            "static_weights": self.static_weights,
            "on_cpu": list(self.on_cpu),
            "host_cpu": self.host_level,
            "optlevel": self.optlevel,
            "time_budget_seconds": self.time_budget_seconds,
            "tuning": asdict(self.tuning),
        }

    @property
    def host_level(self) -> str:
        """The key of `runtime.host.LEVELS` that the CPU parts are compiled for."""
        return host.machine_level() if self.host_cpu == "native" else self.host_cpu

    @property
    def precisions(self) -> Precisions:
        """What float32 becomes, operator by operator."""
        return Precisions(self.fp32_cast, self.fp32_cast_of)

    def __post_init__(self) -> None:
        for name, (kind, wanted) in _KINDS.items():
            value = getattr(self, name)
            fits = value is None or (isinstance(value, kind) and not (kind is Sequence and isinstance(value, str)))
            if not fits:
                raise OptionError(f"{name} is {value!r}; it must be {wanted}")
        _ = self.precisions  # refuses what is no precision
        if self.host_cpu not in (*host.LEVELS, "native"):
            raise OptionError(f"host_cpu is '{self.host_cpu}'; take one of {', '.join(host.LEVELS)}, native")
        if self.optlevel not in LEVELS:
            raise OptionError(f"optlevel is {self.optlevel}; take one of {', '.join(map(str, LEVELS))}")
        if self.time_budget_seconds is not None and not self.time_budget_seconds > 0:
            raise OptionError(f"time_budget_seconds is {self.time_budget_seconds}; it must be more than 0")
        if self.instance:
            check_instance(self.instance)
        for name in ("minimum_segment_size", "pipeline_cores", "processes"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise OptionError(f"{name} is {value}; it must be at least 1")


_KINDS: dict[str, tuple[type, str]] = {
    "device": (str, "the name of a chip or the path of a .json file, as text"),
    "fp32_cast": (str, "the name of a precision"),
    "fp32_cast_of": (Mapping, 'a dictionary of precisions by pattern: {"layer3*": "none"}'),
    "on_cpu": (Sequence, 'several patterns: ("Softmax_*",)'),
    "minimum_segment_size": (Integral, "a whole number"),
    "instance": (str, "the name of an instance, as text"),
    "pipeline_cores": (Integral, "a whole number"),
    "processes": (Integral, "a whole number"),
    "time_budget_seconds": (Real, "a number of seconds"),
    "tuning": (Tuning, "a tvm_neuron.codegen.tuning.Tuning"),
}

_current: ContextVar[BuildOptions | None] = ContextVar("tvm_neuron_build_options", default=None)


def current_options() -> BuildOptions | None:
    """The options of the innermost `build_options` block."""
    return _current.get()


@contextmanager
def build_options(options: BuildOptions) -> Iterator[None]:
    """Builds inside the `with` block use `options`; the way to give them to `tvm.compile`.

    Raises:
        OptionError: they are no BuildOptions.
    """
    if not isinstance(options, BuildOptions):
        raise OptionError(f"options are {options!r}; they must be tvm_neuron.BuildOptions(...)")
    token = _current.set(options)
    try:
        yield
    finally:
        _current.reset(token)
