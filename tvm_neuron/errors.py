"""The error tree: every failure a user can cause is one of these, and its message says what to do.

`code` is stable from release to release; `neuron-cc explain CODE` shows its page.
"""


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


class PlacementError(NeuronError):
    """An operator may not run on the CPU (`must_compile`, `.neff` output) but no NeuronCore can run it."""

    code = "NCC400"


class CompileError(NeuronError):
    """A subgraph accepted by the partitioner could not be compiled."""

    code = "NCC500"


class UnschedulableError(CompileError):
    """No schedule takes an operator; `operator` is its name in the model, `reason` the message without it."""

    code = "NCC501"

    def __init__(self, message: str, operator: str = "", reason: str = "") -> None:
        super().__init__(message)
        self.operator = operator
        self.reason = reason or message


class InternalError(CompileError):
    """Something failed that no user can have caused; `neuron-cc compile` writes a bundle to replay it from."""

    code = "NCC510"


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
    """A program breaks a rule of the instruction set, races with itself, or never ends."""

    code = "NCC800"
