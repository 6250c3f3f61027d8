"""IREE's compiler as a subprocess: an ONNX file to a CPU library. `pip install -e '.[bench]'` installs it."""

import shutil
import subprocess
import sys
from pathlib import Path

NAME = "IREE, llvm-cpu"
_OPSET = 17  # IREE's importer knows old opsets only through onnx's version converter
_FOR_THIS_CPU = (
    "--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
)  # fmt: skip


def is_installed() -> bool:
    """Whether both of IREE's programs are beside this Python, or on the PATH."""
    return all(map(_program, ("iree-import-onnx", "iree-compile")))


def compile_for_cpu(model_file: Path, library_file: Path) -> None:
    """Import and compile, as IREE's documentation does it."""
    imported = library_file.with_suffix(".mlir")
    _run("iree-import-onnx", model_file, "--opset-version", str(_OPSET), "-o", imported)
    _run("iree-compile", imported, *_FOR_THIS_CPU, "-o", library_file)
    imported.unlink()


def _run(name: str, *words: str | Path) -> None:
    subprocess.run([str(_program(name)), *words], check=True, capture_output=True)


def _program(name: str) -> str | None:
    return shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
