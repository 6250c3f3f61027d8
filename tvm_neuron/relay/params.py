"""bind_params_by_name: weights in place of the parameters that they are for."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import tvm
from tvm import relax

from tvm_neuron.relay.ir.expr import Constant, RelayExpr
from tvm_neuron.relay.ir.functor import bind


def bind_params_by_name(func: Any, params: Mapping[str, Any]) -> Any:
    """`func`, of Relay or of Relax, with constants for the parameters of these names.

    Raises ValueError: several parameters of a function of Relay have one of the names.
    """
    if isinstance(func, relax.Function):
        weights = {name: tvm.runtime.tensor(_array(value)) for name, value in params.items()}
        return relax.transform.BindParams("main", weights)(tvm.IRModule({"main": func}))["main"]
    values: dict[Any, Any] = {}
    for name, value in params.items():
        found = [param for param in func.params if param.name_hint == name]
        if len(found) > 1:
            raise ValueError(f"bind_params_by_name: {len(found)} parameters are called '{name}'")
        values |= dict.fromkeys(found, _constant(value))
    return bind(func, values)


def _constant(value: Any) -> Any:
    if isinstance(value, RelayExpr):
        return value
    return Constant(value if isinstance(value, tvm.runtime.Tensor) else tvm.runtime.tensor(_array(value)))


def _array(value: Any) -> np.ndarray:
    return value.numpy() if isinstance(value, tvm.runtime.Tensor) else np.asarray(value)
