"""Converters of ONNX operators to Relax, one file a family; what none of them takes goes to TVM's importer."""

from tvm_neuron.frontend.onnx.converters import (
    arithmetic,
    basic,
    casts,
    detection,
    einsum,
    extremes,
    group_norms,
    indexing,
    norms,
    placement,
    pooling,
    quantization,
    random,
    resizing,
    restated,
    scattering,
    spectra,
    training,
)
from tvm_neuron.frontend.onnx.converters.converter import Converter, Node

CONVERTERS: dict[str, Converter] = {
    **arithmetic.CONVERTERS,
    **basic.CONVERTERS,
    **casts.CONVERTERS,
    **detection.CONVERTERS,
    **einsum.CONVERTERS,
    **extremes.CONVERTERS,
    **group_norms.CONVERTERS,
    **indexing.CONVERTERS,
    **norms.CONVERTERS,
    **placement.CONVERTERS,
    **pooling.CONVERTERS,
    **random.CONVERTERS,
    **quantization.CONVERTERS,
    **resizing.CONVERTERS,
    **restated.CONVERTERS,
    **scattering.CONVERTERS,
    **spectra.CONVERTERS,
    **training.CONVERTERS,
}
"""By ONNX operator; a later family would override an earlier one, so names are in one family only."""

__all__ = ["CONVERTERS", "Converter", "Node"]
