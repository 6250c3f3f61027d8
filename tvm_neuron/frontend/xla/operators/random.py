"""Random numbers of a distribution, drawn in each run."""

from collections.abc import Mapping
from typing import Any

import onnx

from tvm_neuron.frontend.drawing import DRAW_DOMAIN, NORMAL, UNIFORM
from tvm_neuron.frontend.xla.region import Converter
from tvm_neuron.frontend.xla.scope import Scope, dtype_of, shape_of


def _rng(scope: Scope, op: Any, _: Mapping[str, Converter]) -> None:
    """`a + (b - a) u`, u in [0, 1) uniform or else normal: then a is the mean, and b the deviation."""
    low, high, _shape = op.operands
    (result,) = op.results
    is_uniform = UNIFORM.upper() in str(op.attributes["rng_distribution"])
    graph, wanted = scope.graph, dtype_of(result)
    is_whole, is_double = wanted.kind in "iub", wanted.kind in "iub" or wanted.itemsize == 8
    exact = onnx.TensorProto.DOUBLE if is_double else onnx.TensorProto.FLOAT
    ends = [graph.add("Cast", scope.loose(value), to=exact) for value in (low, high)]
    kind, shape = UNIFORM if is_uniform else NORMAL, [*shape_of(result)]
    drawn = graph.add(kind, domain=DRAW_DOMAIN, shape=shape or None, is_double=int(is_double))
    width = graph.add("Sub", ends[1], ends[0]) if is_uniform else ends[1]
    found = graph.add("Add", graph.add("Mul", drawn, width), ends[0])
    if is_whole:
        found = graph.add("Floor", found)
    scope.set(result, graph.add("Cast", found, to=onnx.helper.np_dtype_to_tensor_dtype(wanted)))


CONVERTERS: dict[str, Converter] = {"stablehlo.rng": _rng}
