"""Defects of the compiler that a build goes on after: written down, warned of, and told in the placement."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tvm import relax

from tvm_neuron.codegen.options import BuildOptions
from tvm_neuron.errors import CompileError, DefectWarning, InternalError, NeuronError, NeuronWarning, ProgramError
from tvm_neuron.frontend.origin import bindings_of, origin_of

_MOST_NAMED = 8


class PartError(Exception):
    """A part of the model can't be compiled: the function `func`, for the reason `cause`."""

    def __init__(self, func: relax.Function, symbol: str, cause: Exception) -> None:
        super().__init__(f"{symbol}: {cause}")
        self.func = func
        self.symbol = symbol
        self.cause = cause


@contextmanager
def compiling(func: relax.Function, symbol: str) -> Iterator[None]:
    """Whatever fails inside is a PartError, but for what a user can mend: an option, a device."""
    try:
        yield
    except Exception as error:
        if is_defect(error) or isinstance(error, CompileError):
            raise PartError(func, symbol, error) from error
        raise


def is_defect(error: Exception) -> bool:
    """Whether it is for us to mend, and for no user (who may have made an error of a warning of ours)."""
    return isinstance(error, InternalError | ProgramError) or not isinstance(error, NeuronError | NeuronWarning)


def operators_of(func: relax.Function) -> list[str]:
    """The names of the model's operators in a part."""
    calls = (binding.value for binding in bindings_of(func))
    return list(dict.fromkeys(origin.name for call in calls if (origin := origin_of(call)) is not None))


def reason_for_cpu(error: InternalError, operators: Sequence[str], options: BuildOptions) -> str:
    """The reason for which operators run on the CPU after a defect, of which this warns.

    Raises:
        InternalError: none may (`must_compile`).
    """
    if options.must_compile:
        write_down(error, options)
        raise error
    return tell(error, f"on the CPU: {listed(operators)}", options)


def tell(error: InternalError, effect: str, options: BuildOptions) -> str:
    """Writes a defect down and warns of it and its effect; gives its code, where it is written down, and what it is."""
    message = str(error)
    told = f"defect of the compiler, {error.code}, {write_down(error, options)}: {message}"
    warnings.warn(f"{effect}: {told}; please report it", DefectWarning, stacklevel=2)
    return told


def write_down(error: InternalError, options: BuildOptions) -> str:
    """Says where the defect is written down now, or why it is not; so does the error's message from now on."""
    if error.bundle:
        return f"bundle written to {error.bundle}"
    try:
        error.bundle = options.on_defect(error)
        where = f"bundle written to {error.bundle}"
    except InternalError:  # a listener who wants no more
        raise
    except Exception as failure:  # a full disk must not hide the defect
        where = f"no bundle could be written: {failure}"
    error.args = (f"{error}; {where}",)
    return where


def listed(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
