"""What a model computes with example inputs, as torch captures it: an exported program, or a trace of it."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.cause import cause
from tvm_neuron.frontend.torch.need import need_torch
from tvm_neuron.frontend.torch.quiet import quiet
from tvm_neuron.frontend.torch.results import tensors_of
from tvm_neuron.frontend.torch.training import depends_on_training


@dataclass(frozen=True)
class Arguments:
    """The arguments of one call of a model."""

    positional: tuple[Any, ...] = ()
    named: Mapping[str, Any] | None = None

    @staticmethod
    def of(example_inputs: Any) -> "Arguments":
        """A tensor, a sequence of arguments, or a dictionary of named ones."""
        if isinstance(example_inputs, Mapping):
            return Arguments((), dict(example_inputs))
        if isinstance(example_inputs, Sequence):
            return Arguments(tuple(example_inputs))
        return Arguments((example_inputs,))


def capture(model: Any, example_inputs: Any) -> tuple[Any, Arguments]:
    """`model` as an ExportedProgram or a ScriptModule, and the arguments with which it is called.

    An `nn.Module` or a function that torch.export can't capture is traced instead, which a warning says.

    Raises:
        ModelError: it is in training mode and that makes a difference, there are no example inputs, or it fails with
            them.
    """
    torch = need_torch()
    if isinstance(model, torch.export.ExportedProgram):
        return model, Arguments()
    name = type(model).__name__
    if example_inputs is None:
        raise ModelError(
            f"a {name} needs example_inputs, from which shapes and dtypes are taken: the arguments of one call, as a "
            "tensor, a tuple of arguments or a dictionary of named ones"
        )
    arguments = Arguments.of(example_inputs)
    if isinstance(model, torch.jit.ScriptModule | torch.jit.ScriptFunction):
        return model, arguments  # what depends on training was decided when it was made
    module = model if isinstance(model, torch.nn.Module) else _as_module(model)
    is_training = any(each.training for each in module.modules())
    if not is_training:  # a call would change what the others keep
        _check_runs(model, arguments)
    plain = module.register_forward_hook(lambda _module, _given, result: tensors_of(result))
    try:
        with torch.no_grad(), quiet():
            program = torch.export.export(module, arguments.positional, dict(arguments.named or {}))
        if is_training and depends_on_training(program):
            raise _in_training(name)
        return program, Arguments()
    except ModelError:
        raise
    except Exception as error:
        if is_training:
            raise _in_training(name) from error
        captured = _traced(module, arguments, error)
        warnings.warn(
            f"torch.export can't capture the {name} ({cause(error)}): it was traced instead, so what depends on the "
            "values of its inputs is as it was for the example inputs",
            stacklevel=4,
        )
        return captured, arguments
    finally:
        plain.remove()


def _in_training(name: str) -> ModelError:
    return ModelError(
        f"the {name} is in training mode, in which dropout and batch norm depend on more than the inputs: call its "
        "eval() first"
    )


def _check_runs(model: Any, arguments: Arguments) -> None:
    torch = need_torch()
    try:
        with torch.no_grad():
            model(*arguments.positional, **(arguments.named or {}))
    except Exception as error:
        raise ModelError(f"the {type(model).__name__} fails with the example inputs: {cause(error)}") from error


def _traced(module: Any, arguments: Arguments, exported: Exception) -> Any:
    torch = need_torch()
    try:
        with torch.no_grad(), quiet():
            if arguments.named:
                return torch.jit.trace(module, example_kwarg_inputs=dict(arguments.named), strict=False)
            return torch.jit.trace(module, arguments.positional, strict=False)
    except Exception as error:
        raise ModelError(
            f"torch can capture the {type(module).__name__} neither by torch.export ({cause(exported)}) nor by "
            f"torch.jit.trace ({cause(error)})"
        ) from error


def _as_module(function: Any) -> Any:
    torch = need_torch()

    class Function(torch.nn.Module):  # type: ignore[name-defined]
        def forward(self, *args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

    return Function().eval()
