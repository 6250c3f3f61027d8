"""fingerprint: the hash of everything that a result is made from, the compiler itself among it."""

import json
import platform
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from hashlib import file_digest, sha256
from importlib.metadata import entry_points, version
from importlib.util import find_spec
from os.path import isfile
from pathlib import Path
from typing import Any

_PACKAGES = ("apache-tvm", "apache-tvm-ffi", "ml_dtypes", "numpy", "onnx")
_SOURCES = ("*.py", "*.json", "*.cc")
_OURS = Path(__file__).parents[1]


def fingerprint(wishes: Any, files: Iterable[Path]) -> str:
    """The key of a result: of the wishes (plain values), the contents of the files, and the compiler that is installed.

    A file that is missing counts as such: what needs it will fail, and nothing is kept.
    """
    parts = [compiler(), json.dumps(wishes, sort_keys=True), *map(_of_file, files)]
    return sha256("\n".join(parts).encode()).hexdigest()


@cache
def compiler() -> str:
    """The hash of the compiler's code, of all installed schedules, and of the versions of what it stands on."""
    parts = [platform.machine(), f"{sys.version_info[:2]}", *(f"{name} {version(name)}" for name in _PACKAGES)]
    for folder in (_OURS, *_rule_folders()):
        sources = sorted(path for pattern in _SOURCES for path in folder.rglob(pattern))
        parts += [f"{path.relative_to(folder)} {_of_file(path)}" for path in sources]
    return sha256("\n".join(parts).encode()).hexdigest()


def _rule_folders() -> Iterator[Path]:
    """The packages that schedules come from; a single module counts with its folder."""
    for entry in sorted(entry_points(group="tvm_neuron.schedules"), key=lambda entry: entry.name):
        spec = find_spec(entry.module)
        if spec is not None and spec.origin is not None:
            yield Path(spec.origin).parent


def _of_file(path: Path) -> str:
    if not isfile(path):
        return "missing"
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
