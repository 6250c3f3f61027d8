"""Runs a task in a process of its own, with limits; what it imports is loaded once, in a process that is forked."""

import resource
import signal
from collections.abc import Callable, Sequence
from multiprocessing import get_context
from typing import Any

WAITING = 4
"""A machine with other work may take so many times the processor time."""
_CONTEXT = get_context("forkserver")


def preload(modules: Sequence[str]) -> None:
    """What tasks need; to be said before the first of them."""
    _CONTEXT.set_forkserver_preload(list(modules))


def run_apart(task: Callable[..., None], arguments: tuple[Any, ...], seconds: int, memory_bytes: int) -> str:
    """Why it didn't end by itself, in words; "" if it did."""
    process = _CONTEXT.Process(target=_limited, args=(task, arguments, seconds, memory_bytes))
    process.start()
    process.join(WAITING * seconds)
    if process.is_alive():
        process.kill()
        process.join()
        return f"took more than {seconds} s"
    if process.exitcode == -signal.SIGXCPU:
        return f"took more than {seconds} s"
    if process.exitcode and process.exitcode < 0:
        return f"ended by {signal.Signals(-process.exitcode).name}"
    return f"ended with {process.exitcode}" if process.exitcode else ""


def _limited(task: Callable[..., None], arguments: tuple[Any, ...], seconds: int, memory_bytes: int) -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    # past the soft limit a signal ends it, which tells why; the hard one would kill it without a word
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.getrlimit(resource.RLIMIT_CPU)[1]))
    task(*arguments)
