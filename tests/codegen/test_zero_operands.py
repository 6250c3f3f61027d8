"""Zeros of no dimensions: times infinities, and divided by zeros, they are not zeros. TVM folds such constants."""

import ml_dtypes
import numpy as np
import pytest
import tvm
from tvm import relax

import tvm_neuron
from tvm_neuron.build import BuildOptions

NUMBERS = (0.0, -0.0, np.inf, -np.inf, np.nan, 2.5, -2.5)


DTYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32, "float64": np.float64}


def _module(zero: float) -> tvm.IRModule:
    operands = [relax.Var(dtype, relax.TensorType((len(NUMBERS),), dtype)) for dtype in DTYPES]
    builder = relax.BlockBuilder()
    with builder.function("main", operands):
        with builder.dataflow():
            made = []
            for x, dtype in zip(operands, DTYPES, strict=True):
                scalar = relax.const(zero, dtype)
                made += [relax.op.multiply(x, scalar), relax.op.multiply(scalar, x), relax.op.divide(scalar, x)]
            outputs = builder.emit_output(relax.Tuple([builder.emit(call) for call in made]))
        builder.emit_func_output(outputs)
    return builder.get()


@pytest.mark.parametrize("zero", [0.0, -0.0])
@pytest.mark.parametrize("place", ["neuron/inf1", "neuron/inf2", "cpu"])
def test_as_numpy_has_them(place: str, zero: float) -> None:
    options = BuildOptions(on_cpu=("*",)) if place == "cpu" else BuildOptions(device=place)
    module = tvm_neuron.compile(_module(zero), target="neuron", options=options)["default"](tvm.cpu())
    operands = {name: np.array(NUMBERS, dtype) for name, dtype in DTYPES.items()}
    module.run(**operands)
    with np.errstate(all="ignore"):
        zeros = {name: dtype(zero) for name, dtype in DTYPES.items()}
        wanted = [y for name, x in operands.items() for y in (x * zeros[name], zeros[name] * x, zeros[name] / x)]
    for number, exact in enumerate(wanted):
        found = module.get_output(number).numpy()
        np.testing.assert_array_equal(found.astype("float64"), exact.astype("float64"))
        known = ~np.isnan(exact)
        np.testing.assert_array_equal(np.signbit(found[known]), np.signbit(exact[known]))
