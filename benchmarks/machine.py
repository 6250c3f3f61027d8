"""What the numbers were taken on, and of which code."""

import os
import platform
import subprocess
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[1]
_CODE = ("*.py", "*.cc", "*.json")


def describe() -> dict[str, str]:
    """Processor, cores, load, and the versions of what takes part."""
    packages = {name: version(name) for name in ("tvm-neuron", "apache-tvm", "onnxruntime", "numpy")}
    load = os.getloadavg()[0]
    facts = {"processor": processor(), "cores": str(os.cpu_count()), "load": f"{load:.1f}"}
    return facts | {"Python": platform.python_version()} | packages


def processor() -> str:
    """The name of the processor."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def commit() -> str:
    """The commit whose code runs here, and a hash of what was changed in it since; "unknown" where there is no git."""

    def git(*words: str) -> bytes:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, check=True).stdout

    try:
        head, changes = git("rev-parse", "--short=12", "HEAD").decode().strip(), git("diff", "HEAD", "--", *_CODE)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{head} with changes {sha256(changes).hexdigest()[:8]}" if changes else head
