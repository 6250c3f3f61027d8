"""Constants of 16 bits are computed in float32 within each operator, and rounded where they leave it."""

import math

import ml_dtypes  # noqa: F401  bfloat16 as a name
import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.codegen.on_core import on_core
from tests.onnx_models import make_model

X = np.linspace(-4, 3, 90).reshape(3, 30)
WANTED = {
    "Gelu": np.vectorize(lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2),
    "Elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "Softplus": lambda x: np.log1p(np.exp(x)),
    "Mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
}


@pytest.mark.parametrize("by", ["the importer", "the code generator"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("op", WANTED)
def test_a_function_of_a_constant(op: str, dtype: str, by: str) -> None:
    """The importer evaluates what follows from Constant nodes, the code generator what follows from initializers.

    Rounded to 16 bits once by the function and once by the sum with nought, half a unit each; far below 0 the
    functions lose float32's digits to 1 + erf(x) and the like, whose error is a few of 2^-24 times x.
    """
    kind = TensorProto.FLOAT16 if dtype == "float16" else TensorProto.BFLOAT16
    given = X.astype(np.dtype(dtype))
    nodes = [helper.make_node(op, ["c"], ["made"]), helper.make_node("Add", ["made", "x"], ["y"])]
    constants = {"c": given}
    if by == "the importer":
        value = helper.make_tensor("c", kind, given.shape, given.tobytes(), raw=True)
        nodes, constants = [helper.make_node("Constant", [], ["c"], value=value), *nodes], {}
    model = make_model(nodes, {"x": X.shape}, ["y"], constants, opset=22, dtype=kind)
    (found,) = on_core(model, {"x": np.zeros(X.shape, np.dtype(dtype))}, "inf2", "none")
    wanted = WANTED[op](given.astype(np.float64))
    unit = 2.0 ** -(10 if dtype == "float16" else 7)
    np.testing.assert_allclose(np.asarray(found, np.float64), wanted, rtol=unit, atol=2.0**-16)
