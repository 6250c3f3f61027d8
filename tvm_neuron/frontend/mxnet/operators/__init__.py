"""What each operator of MXNet is in ONNX: a converter by its name, a file a family."""

from tvm_neuron.frontend.mxnet.operators import (
    activations,
    boxes,
    constants,
    elementwise,
    norms,
    positions,
    products,
    recurrent,
    reductions,
    sequences,
    shapes,
    windows,
)
from tvm_neuron.frontend.mxnet.operators.activations import LOSSES
from tvm_neuron.frontend.mxnet.operators.converter import Converter
from tvm_neuron.frontend.mxnet.operators.recurrent import OUTPUTS

__all__ = ["CONVERTERS", "LOSSES", "OUTPUTS"]

CONVERTERS: dict[str, Converter] = {
    **elementwise.CONVERTERS,
    **activations.CONVERTERS,
    **shapes.CONVERTERS,
    **constants.CONVERTERS,
    **windows.CONVERTERS,
    **norms.CONVERTERS,
    **reductions.CONVERTERS,
    **products.CONVERTERS,
    **positions.CONVERTERS,
    **sequences.CONVERTERS,
    **recurrent.CONVERTERS,
    **boxes.CONVERTERS,
}
