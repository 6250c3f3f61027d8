"""Random numbers of a distribution. What they are is open, so they are drawn once, when the model is compiled."""

import warnings
from collections.abc import Mapping
from typing import Any

import onnx

from tvm_neuron.errors import InputWarning
from tvm_neuron.frontend.xla.region import Converter
from tvm_neuron.frontend.xla.scope import Scope, dtype_of, shape_of

_UNIFORM, _DRAWN = "UNIFORM", ("RandomUniform", "RandomNormal")


def _rng(scope: Scope, op: Any, _: Mapping[str, Converter]) -> None:
    """`a + (b - a) u`, u in [0, 1) uniform or else normal: then a is the mean, and b the deviation."""
    low, high, _shape = op.operands
    (result,) = op.results
    is_uniform = _UNIFORM in str(op.attributes["rng_distribution"])
    warnings.warn(
        f"operator '{scope.graph.scope}' (stablehlo.rng) draws random numbers: they are drawn when the model is "
        "compiled, and are the same in every run. Give them as an input to have new ones",
        InputWarning,
        stacklevel=2,
    )
    graph, dtype = scope.graph, onnx.helper.np_dtype_to_tensor_dtype(dtype_of(result))
    is_whole = dtype_of(result).kind in "iub"
    exact = onnx.TensorProto.DOUBLE if is_whole else dtype
    ends = [scope.loose(value) for value in (low, high)]
    if is_whole:
        ends = [graph.add("Cast", name, to=exact) for name in ends]
    count = sum(node.op_type in _DRAWN for node in graph.nodes)
    drawn = graph.add(_DRAWN[0 if is_uniform else 1], shape=[*shape_of(result)], dtype=exact, seed=float(count))
    width = graph.add("Sub", ends[1], ends[0]) if is_uniform else ends[1]
    found = graph.add("Add", graph.add("Mul", drawn, width), ends[0])
    scope.set(result, graph.add("Cast", graph.add("Floor", found), to=dtype) if is_whole else found)


CONVERTERS: dict[str, Converter] = {"stablehlo.rng": _rng}
