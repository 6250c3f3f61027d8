"""The activations that the standard names for recurrent operators."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.onnx.sequences import MakeNode
from tvm_neuron.frontend.onnx.values import Known, Value

_WITH_ALPHA = {
    "LeakyRelu": 0.01, "ThresholdedRelu": 1.0, "HardSigmoid": 0.2, "Elu": 1.0, "Affine": 1.0, "ScaledTanh": 1.0,
}  # fmt: skip
_WITH_BETA = {"HardSigmoid": 0.5, "Affine": 0.0, "ScaledTanh": 1.0}

Activation = Callable[[Value], Value]


def activation(name: str, alphas: list[float], betas: list[float], make: MakeNode, dtype: np.dtype[Any]) -> Activation:
    """The activation of that name, taking its parameters from the front of the lists."""
    alpha = (alphas.pop(0) if alphas else _WITH_ALPHA[name]) if name in _WITH_ALPHA else 0.0
    beta = (betas.pop(0) if betas else _WITH_BETA[name]) if name in _WITH_BETA else 0.0

    def number(value: float) -> Value:
        return Known(np.array(value, dtype))

    match name:
        case "Affine":
            return lambda x: make("Add", [make("Mul", [x, number(alpha)]), number(beta)])
        case "ScaledTanh":
            return lambda x: make("Mul", [make("Tanh", [make("Mul", [x, number(beta)])]), number(alpha)])
        case "HardSigmoid":
            return lambda x: make("HardSigmoid", [x], alpha=alpha, beta=beta)
        case "LeakyRelu" | "ThresholdedRelu" | "Elu":
            return lambda x: make(name, [x], alpha=alpha)
        case "Relu" | "Tanh" | "Sigmoid" | "Softsign" | "Softplus":
            return lambda x: make(name, [x])
        case _:
            raise ModelError(f"its activation '{name}' is none that the standard names")
