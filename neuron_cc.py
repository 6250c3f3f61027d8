"""The command `neuron-cc`. It stands outside of its package so that Ctrl-C has its meaning before that is imported."""

import os
import signal
from typing import Any


def main() -> None:
    """Runs the command line; Ctrl-C ends it with one line and the exit code 130, from the first moment on."""
    end_while_importing()
    from tvm_neuron.cli.main import run_process

    run_process()


def end_while_importing() -> None:
    """From now on Ctrl-C ends a process that is no more than its imports; for `python -m tvm_neuron.cli.main`, too."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # as it is for what a script runs beside itself
        signal.signal(signal.SIGINT, _end)


def _end(_number: int, _frame: Any) -> None:
    """Nothing has been done yet."""
    os.write(2, b"neuron-cc: interrupted\n")
    os._exit(130)


if __name__ == "__main__":
    main()
