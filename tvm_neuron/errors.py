"""The error tree: every failure a user can cause is one of these, and its message says what to do.

`code` is stable from release to release; `neuron-cc explain CODE` shows its page.
"""

from collections.abc import Iterator
from contextlib import contextmanager


class NeuronError(Exception):
    """Base of all errors of this project; a command prints its message and exits with 1."""

    code = "NCC001"


class ModelError(NeuronError):
    """The model file or module can't be used: not a model, unknown opset, dynamic shape, unsupported dtype."""

    code = "NCC100"


class InputError(NeuronError):
    """Inputs given at run time don't fit the compiled program: missing, extra, wrong shape or dtype."""

    code = "NCC200"


class RangeError(NeuronError):
    """A value at run time is outside of what the device can carry exactly."""

    code = "NCC201"


class PositionError(RangeError):
    """An index computed at run time lies outside of the dimension it chooses from; `origin` numbers its operator."""

    code = "NCC202"

    def __init__(self, message: str, origin: int = 0) -> None:
        super().__init__(message)
        self.origin = origin


class OptionError(NeuronError):
    """A build option has a value that does not exist, or contradicts another."""

    code = "NCC300"


class ServiceError(NeuronError):
    """Models can't be loaded, started or asked as wished: no such cores, not started, stopped meanwhile."""

    code = "NCC900"


class QueueFullError(ServiceError):
    """A model holds as many requests as it may (QUEUE_FULL)."""

    code = "NCC901"


class InferTimeoutError(ServiceError):
    """A result took longer than the caller waits (TIMEOUT)."""

    code = "NCC902"


class NotServedError(ServiceError):
    """A server has no such model, or no such version of it."""

    code = "NCC910"


class NotReadyError(ServiceError):
    """A server's model is not loaded now, or the server is about to end."""

    code = "NCC911"


class TooLargeError(InputError):
    """A request to a server has more bytes than it takes."""

    code = "NCC210"


class PlacementError(NeuronError):
    """An operator may not run on the CPU (`must_compile`, `.neff` output) but no NeuronCore can run it."""

    code = "NCC400"


class CompileError(NeuronError):
    """A subgraph accepted by the partitioner could not be compiled."""

    code = "NCC500"


class UnschedulableError(CompileError):
    """No schedule takes an operator; `operator` is its name in the model, `reason` the message without it.

    `others` were found beside it, none of which a schedule takes either.
    """

    code = "NCC501"

    def __init__(self, message: str, operator: str = "", reason: str = "") -> None:
        super().__init__(message)
        self.operator = operator
        self.reason = reason or message
        self.others: list[UnschedulableError] = []


class InternalError(CompileError):
    """Something failed that no user can have caused: a defect of the compiler.

    `operator` is the one in the model at which it failed, if that is known, `part` the text of the part that it is in;
    `bundle` is where all is written down that is known of it, once that is done.
    """

    code = "NCC510"

    def __init__(self, message: str, operator: str = "") -> None:
        super().__init__(message)
        self.operator = operator
        self.part = self.bundle = ""


class UnsoundError(InternalError):
    """The compiler made a program that its own checks refuse: it breaks a rule, or races with itself."""

    code = "NCC511"


class AssumptionError(InternalError):
    """An assertion in the compiler failed."""

    code = "NCC512"


class HostMemoryError(InternalError):
    """The compiler asked for more memory than this machine gives."""

    code = "NCC513"


class NeffError(NeuronError):
    """A NEFF or a library can't be read (truncated, corrupted, of another major version), or can't be written."""

    code = "NCC600"


class HostError(NeuronError):
    """This machine can't run a library: its processor lacks what it was compiled for."""

    code = "NCC610"


class DeviceError(NeuronError):
    """A device description is missing a value, has an unknown key, or contradicts itself."""

    code = "NCC700"


class ProgramError(NeuronError):
    """A program breaks a rule of the instruction set, races with itself, or never ends; `operator` names whose part."""

    code = "NCC800"

    def __init__(self, message: str, operator: str = "") -> None:
        super().__init__(message)
        self.operator = operator


class KernelError(NeuronError):
    """A kernel written by hand breaks a rule of its language or of the chip; the message ends in its file and line."""

    code = "NCC810"


class NeuronWarning(UserWarning):
    """Base of all warnings of this project."""


class DefectWarning(NeuronWarning):
    """A defect of the compiler: the operators at fault run on the CPU instead."""


class InputWarning(NeuronWarning):
    """Numbers of an input change by being converted to the dtype that the model takes."""


class PrecisionWarning(NeuronWarning):
    """Numbers of the model are beyond the dtype that was chosen for them."""


class PlacementWarning(NeuronWarning):
    """Nothing, or little of the work of a model, runs on the NeuronCore."""


_DEFECTS: tuple[tuple[type[Exception], type[InternalError]], ...] = (
    (ProgramError, UnsoundError),
    (AssertionError, AssumptionError),
    (MemoryError, HostMemoryError),
)


def internal_error(error: Exception, where: str) -> InternalError:
    """What failed unexpectedly, as an error of its kind with the place of the failure in front."""
    if isinstance(error, InternalError):
        return error
    kind = next((ours for theirs, ours in _DEFECTS if isinstance(error, theirs)), InternalError)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = "" if not lines else lines[-1 if hasattr(error, "__tvm_ffi_error__") else 0]  # TVM says last what it is
    operator, what = operator_of(error), f"{type(error).__name__}{f': {text}' if text else ''}"
    found = kind(f"{where}{f', {operator}' if operator else ''}: {what}", operator)
    found.__cause__ = error
    return found


@contextmanager
def from_extra(extra: str, what: str) -> Iterator[None]:
    """Imports inside that need an extra: without it, one sentence says what does and which to install.

    Raises:
        OptionError: a package is missing.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        raise OptionError(f"{what} needs the package {package}: pip install 'tvm-neuron[{extra}]'") from error


@contextmanager
def at_operator(name: str) -> Iterator[None]:
    """What fails inside bears the name of the model's operator, unless it names one already."""
    try:
        yield
    except Exception as error:
        if not operator_of(error):
            error.operator = name  # type: ignore[attr-defined]
        raise


def operator_of(error: BaseException) -> str:
    """The name of the operator at which something failed; empty if that is not known."""
    return str(getattr(error, "operator", ""))
