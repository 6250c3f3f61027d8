"""Ctrl-C at any moment: exit code 130, one line, and nothing is left behind."""

import signal
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
import tvm

from tests.cli.conftest import Cli
from tvm_neuron.cli import interrupt
from tvm_neuron.errors import NeffError, NeuronError

COMMAND = [Path(__file__).parents[2] / "neuron_cc.py"]
MODULE = ["-m", "tvm_neuron.cli.main"]


def interrupted_at(
    moment: str, words: list[object], folder: Path, start: Sequence[object] = COMMAND
) -> tuple[int, list[str]]:
    """The exit code and what comes on stderr after a line with `moment` in it, at which Ctrl-C is pressed."""
    command = [sys.executable, "-X", "importtime", *start, *words]
    heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # even where these tests run beside something else
    with subprocess.Popen(
        list(map(str, command)), cwd=folder, stderr=subprocess.PIPE, text=True, preexec_fn=heard
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if moment in line:
                process.send_signal(signal.SIGINT)
                break
        rest = [line for line in process.stderr if not line.startswith(("import time:", "compile:"))]
    return process.returncode, rest


@pytest.mark.slow
@pytest.mark.parametrize("moment", [" numpy\n", "s partition", "s write"])
def test_a_process_of_its_own(moment: str, mixed_onnx_file: Path, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    words: list[object] = ["compile", mixed_onnx_file, "--output", tmp_path / "net.so"]
    assert interrupted_at(moment, words, tmp_path) == (130, ["neuron-cc: interrupted\n"])
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("moment", [" tvm.ir\n", " tvm_neuron.errors\n", " tvm_neuron.cli.compile\n"])
def test_while_a_module_that_is_run_is_imported(moment: str, tmp_path: Path) -> None:
    assert interrupted_at(moment, ["--version"], tmp_path, MODULE) == (130, ["neuron-cc: interrupted\n"])


def test_a_process_of_somebody_else_s(cli: Cli, onnx_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tvm_neuron.codegen.function.compile_function", interrupt)
    output = onnx_file.with_name("net.neff")
    code, said, told = cli("compile", onnx_file, "--output", output, "--verbose", "error")
    assert (code, said, told) == (130, "", "neuron-cc compile: interrupted\n")
    assert list(onnx_file.parent.iterdir()) == [onnx_file]


def test_tvm_passes_it_on() -> None:
    @tvm.transform.module_pass(opt_level=0)
    def stopped(_mod: tvm.IRModule, _context: tvm.transform.PassContext) -> tvm.IRModule:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped(tvm.IRModule())


def test_errors_of_tvm_remain_its_own() -> None:
    with pytest.raises(tvm.error.InternalError) as caught:
        tvm.relax.ShapeExpr([tvm.tirx.const(1.0, "float32")])
    assert not isinstance(caught.value, NeuronError)


def test_what_is_ignored_stays_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """As for a command that a script runs beside itself."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        interrupt.take_over()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        signal.signal(signal.SIGINT, signal.default_int_handler)
        interrupt.too_late()  # of a process that is not its own
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        monkeypatch.setattr(interrupt, "_ends_process", False)  # as it is again afterwards
        interrupt.take_over()
        assert signal.getsignal(signal.SIGINT) is interrupt.end_process
        interrupt.too_late()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_folders_are_removed(tmp_path: Path) -> None:
    with interrupt.temporary_folder(tmp_path, "a") as folder:
        (folder / "half").write_text("x")
        interrupt.remove_folders()
        assert not list(tmp_path.iterdir())
    with pytest.raises(NeffError), interrupt.temporary_folder(tmp_path, "b"):
        raise NeffError("a failure")
    assert not list(tmp_path.iterdir())
