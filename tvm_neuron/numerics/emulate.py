"""Every operator three times by onnxruntime: exact, on rounded inputs as the core rounds them, and rounded alone."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.errors import ModelError, from_extra
from tvm_neuron.isa.dtypes import DTYPES
from tvm_neuron.numerics.model import Arrays, Model, Operator
from tvm_neuron.numerics.on_core import EXACT, Rounding

Values = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Emulation:
    """Tensors by name: `exact` in the model's dtypes; `grown`, all operators rounded; `alone`, each on exact inputs."""

    exact: Arrays
    grown: Arrays
    alone: Arrays


def emulate(model: Model, inputs: Values, roundings: Callable[[], Mapping[str, Rounding]]) -> Emulation:
    """Runs a model operator by operator; `roundings` says of each by name what it multiplies and keeps.

    Raises:
        OptionError: onnxruntime is not installed.
        ModelError: it can't run an operator, or one gives no tensor.
    """
    rounds = roundings()
    exact: Arrays = {**model.weights, **inputs}
    grown, alone = dict(exact), dict[str, NDArray[Any]]()
    for one in model.operators:
        run = _runner(model, one, exact)
        rounding = Rounding() if model.constants.issuperset(one.makes) else rounds.get(one.name, Rounding())
        made = run(exact)
        alone |= _kept(run(_operands(one, exact, rounding.multiplied, model)), rounding.kept)
        grown |= _kept(run(_operands(one, grown, rounding.multiplied, model)), rounding.kept)
        exact |= made
    return Emulation(exact, grown, alone)


def rounded(array: NDArray[Any], dtype: str) -> NDArray[Any]:
    """The nearest numbers of a dtype, in the dtype of the array; whole numbers stay."""
    if dtype == EXACT or array.dtype.kind != "f":
        return array
    with np.errstate(over="ignore"):  # float16 ends at 65504
        return array.astype(DTYPES[dtype]).astype(array.dtype)


def _operands(one: Operator, values: Values, dtype: str, model: Model) -> Arrays:
    """What it reads; biases, constants of fewer than two dimensions, are added in float32."""
    known = {name: values[name] for name in one.reads if name in values}
    return {
        name: array if name in model.constants and array.ndim < 2 else rounded(array, dtype)
        for name, array in known.items()
    }


def _kept(made: Arrays, dtype: str) -> Arrays:
    return {name: rounded(array, dtype) for name, array in made.items()}


def _runner(model: Model, one: Operator, values: Values) -> Callable[[Values], Arrays]:
    """Runs one operator on arrays of these dtypes."""
    with from_extra("compare", "a comparison with float32"):
        import onnxruntime
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 4
    settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    bare = model.bare(one, {name: values[name].dtype for name in one.reads if name in values})
    names = [value.name for value in bare.graph.input]
    try:
        session = onnxruntime.InferenceSession(bare.SerializeToString(), settings, providers=["CPUExecutionProvider"])
    except Exception as error:  # it has a class for each kind of failure, and no base of its own
        raise _failed(one, error) from error

    def run(operands: Values) -> Arrays:
        try:
            made = session.run(list(one.makes), {name: operands[name] for name in names})
        except Exception as error:
            raise _failed(one, error) from error
        return dict(_tensors(one, made))

    return run


def _tensors(one: Operator, made: list[Any]) -> Iterator[tuple[str, NDArray[Any]]]:
    for name, value in zip(one.makes, made, strict=True):
        if not isinstance(value, np.ndarray):
            kind = type(value).__name__
            raise ModelError(f"operator '{one.name}' ({one.op}) gives a {kind}: only tensors are compared")
        yield name, value


def _failed(one: Operator, error: Exception) -> ModelError:
    text = next(iter(str(error).splitlines()), type(error).__name__)
    return ModelError(f"onnxruntime, which is the reference, can't run operator '{one.name}' ({one.op}): {text}")
