"""A model with all of its operators on the core, beside onnxruntime."""

import numpy as np
import onnx
import tvm

import tvm_neuron
from tests.onnx_models import Arrays, reference
from tvm_neuron import relay
from tvm_neuron.build import BuildOptions

PRECISIONS = [("inf1", "all"), ("inf1", "matmult-fp16"), ("inf2", "all"), ("inf2", "none")]
"""Chips and modes with all of which the PE array multiplies: that of inf1 takes no float32."""

ROUNDING = {"all": 2.0**-9, "matmult-fp16": 2.0**-11, "none": 2.0**-24}
"""By how much of itself a number is changed at most where it is rounded once."""


def on_core(model: onnx.ModelProto, inputs: Arrays, chip: str, fp32_cast: str = "all") -> list[np.ndarray]:
    """The outputs; raises PlacementError where an operator is left to the CPU."""
    mod, params = relay.frontend.from_onnx(model)
    options = BuildOptions(fp32_cast=fp32_cast, must_compile=True)
    library = relay.build(mod, target=f"neuron/{chip}", params=params, options=options)
    assert not tvm_neuron.report(library).placed("cpu")
    executor = relay.graph_executor.GraphModule(library["default"](tvm.cpu()))
    executor.run(**inputs)
    return [executor.get_output(number).numpy() for number in range(len(model.graph.output))]


def check(model: onnx.ModelProto, inputs: Arrays, chip: str, fp32_cast: str, roundings: int = 8) -> None:
    """Floats are off by so many roundings at most, of their root mean square; others are as onnxruntime has them."""
    for actual, wanted in zip(on_core(model, inputs, chip, fp32_cast), reference(model, inputs), strict=True):
        assert (actual.shape, actual.dtype) == (wanted.shape, wanted.dtype)
        once = max(ROUNDING[fp32_cast], np.finfo(wanted.dtype).eps / 2) if wanted.dtype.kind == "f" else 0.0
        exact = wanted.astype(np.float64)
        assert np.linalg.norm(actual.astype(np.float64) - exact) <= roundings * once * np.linalg.norm(exact)
