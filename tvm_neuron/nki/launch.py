"""What runs kernels: simulate, benchmark, profile and baremetal, with the forms that each dialect gives them."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tvm_neuron import neff
from tvm_neuron.nki.dialects import BETA1, BETA2, Dialect
from tvm_neuron.nki.kernel import Kernel, Traced, jit
from tvm_neuron.nki.trace import is_tracing

_PS_PER_US = 10**6


@dataclass(frozen=True)
class Latency:
    """The modelled time of a kernel on its cores, in picoseconds; it is the same in every run."""

    total_ps: int

    def get_latency_percentile(self, percentile: int) -> float:
        """Microseconds."""
        return self.total_ps / _PS_PER_US


@dataclass(frozen=True)
class BenchmarkResult:
    """What a benchmark finds."""

    nc_latency: Latency


class Benchmark(Kernel):
    """A kernel that keeps the time of its last call in `benchmark_result`, and its NEFF in a file if one is named."""

    benchmark_result: BenchmarkResult
    save_neff_name: str = ""

    def __getitem__(self, grid: Any) -> "Benchmark":
        found = super().__getitem__(grid)
        assert isinstance(found, Benchmark)
        found.save_neff_name = self.save_neff_name
        return found

    def __call__(self, *args: Any, **words: Any) -> Any:
        """The values, as arrays."""
        if is_tracing():
            return self.function(*args, **words)
        traced = self.trace(*args, **words)
        self.benchmark_result = BenchmarkResult(Latency(traced.latency_ps()))
        if self.save_neff_name:
            save(traced, self.save_neff_name)
        return traced.run()


def save(traced: Traced, path: str | Path) -> None:
    """Writes the kernel's program as a NEFF."""
    Path(path).write_bytes(neff.write(traced.neff()))


def baremetal(kernel: Any = None, dialect: Dialect = BETA2, **_: Any) -> Any:
    """The kernel itself: called with arrays, it gives arrays. Also as a decorator with arguments."""
    return functools.partial(baremetal, dialect=dialect) if kernel is None else jit(kernel, dialect=dialect)


def benchmark(kernel: Any = None, save_neff_name: str = "", dialect: Dialect = BETA2, **_: Any) -> Any:
    """The kernel with `benchmark_result`; the numbers of runs are of no use, since all take the same time."""
    if kernel is None:
        return functools.partial(benchmark, save_neff_name=save_neff_name, dialect=dialect)
    of = jit(kernel, dialect=dialect)
    found = Benchmark(of.function, of.chip, of.grid, of.dialect)
    found.save_neff_name = save_neff_name
    return found


profile = benchmark


def simulate_kernel(kernel: Any, *args: Any, **words: Any) -> Any:
    """The values that a kernel returns; it is one of Beta 1, which alone has this name."""
    return jit(kernel, dialect=BETA1)(*args, **words)


def simulate(kernel: Any) -> Kernel:
    """The kernel itself: calling it runs it on the model."""
    found: Kernel = jit(kernel)
    return found


def trace(function: Callable[..., Any]) -> Callable[..., Any]:
    """A part of a kernel: the function itself."""
    return function
