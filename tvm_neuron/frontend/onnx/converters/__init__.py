"""Converters of ONNX operators to Relax, one file a family; what none of them takes goes to TVM's importer."""

from tvm_neuron.frontend.onnx.converters import (
    arithmetic,
    basic,
    casts,
    einsum,
    indexing,
    quantization,
    random,
    resizing,
    training,
)
from tvm_neuron.frontend.onnx.converters.converter import Converter, Node

CONVERTERS: dict[str, Converter] = {
    **arithmetic.CONVERTERS,
    **basic.CONVERTERS,
    **casts.CONVERTERS,
    **einsum.CONVERTERS,
    **indexing.CONVERTERS,
    **random.CONVERTERS,
    **quantization.CONVERTERS,
    **resizing.CONVERTERS,
    **training.CONVERTERS,
}
"""By ONNX operator; a later family would override an earlier one, so names are in one family only."""

__all__ = ["CONVERTERS", "Converter", "Node"]
