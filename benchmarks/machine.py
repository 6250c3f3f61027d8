"""What the numbers were taken on."""

import os
import platform
from importlib.metadata import version
from pathlib import Path


def describe() -> dict[str, str]:
    """Processor, cores, load, and the versions of what takes part."""
    packages = {name: version(name) for name in ("tvm-neuron", "apache-tvm", "onnxruntime", "numpy")}
    load = os.getloadavg()[0]
    facts = {"processor": _processor(), "cores": str(os.cpu_count()), "load": f"{load:.1f}"}
    return facts | {"Python": platform.python_version()} | packages


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
