"""The host's processor: which instructions CPU parts may use, and on how many threads they run."""

import os
from functools import cache
from pathlib import Path

import numpy as np
import tvm

from tvm_neuron.errors import HostError

_V2 = frozenset(["cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"])
_V3 = _V2 | frozenset(["abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "xsave"])
_V4 = _V3 | frozenset(["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"])

BASELINE = "baseline"
"""Instructions that every processor of the architecture has."""

LLVM = {"kind": "llvm", "cl-opt": ["-vectorize-slp:bool=false"]}
"""TVM's target for the CPU. LLVM's vectoriser of straight code (SLP) makes of some kernels what LLVM itself then
refuses ("Instruction does not dominate all uses"); loops are vectorised all the same, by the schedule or by LLVM."""

_THREADS = ("TVM_NUM_THREADS", "OMP_NUM_THREADS")

LEVELS = {BASELINE: frozenset[str](), "x86-64-v2": _V2, "x86-64-v3": _V3, "x86-64-v4": _V4}
"""The levels of the x86-64 psABI, and what each needs in the names of /proc/cpuinfo."""


def machine_level() -> str:
    """The highest level that this machine's processor has."""
    flags = _flags()
    return [level for level, needed in LEVELS.items() if needed <= flags][-1]


def has_level(level: str) -> tvm.runtime.Tensor:
    """Whether this machine's processor has all instructions of a level, as the virtual machine branches on it."""
    return _flag(LEVELS[level] <= _flags())


def check_level(level: str) -> None:
    """Raises HostError if this machine lacks instructions of the level that a library was compiled for."""
    missing = LEVELS[level] - _flags()
    if missing:
        raise HostError(
            f"the CPU parts were compiled with host_cpu='{level}', and this processor lacks "
            f"{', '.join(sorted(missing))}: compile them with host_cpu='{machine_level()}'"
        )


def use_all_cores() -> None:
    """Let CPU parts use a thread for each core that this process may run on.

    TVM would count half of the processors as hyperthreads, also where they are none. TVM_NUM_THREADS and
    OMP_NUM_THREADS, which TVM reads, win over this.
    """
    cores = _cores()
    if cores and not set(_THREADS) & set(os.environ):
        os.environ[_THREADS[0]] = str(cores)


def _cores() -> int:
    """0 where the system does not tell."""
    if not hasattr(os, "sched_getaffinity"):
        return 0
    folder = Path("/sys/devices/system/cpu")
    files = [folder / f"cpu{number}/topology/thread_siblings_list" for number in os.sched_getaffinity(0)]
    return len({file.read_text() for file in files}) if all(file.is_file() for file in files) else 0


@cache
def _flag(value: bool) -> tvm.runtime.Tensor:
    return tvm.runtime.tensor(np.array(value))


@cache
def _flags() -> frozenset[str]:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    found = [line.partition(":")[2].split() for line in lines if line.startswith("flags")]
    return frozenset(found[0]) if found else frozenset()
