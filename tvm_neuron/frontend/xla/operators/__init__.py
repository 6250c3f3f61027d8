"""What each operator of StableHLO is in ONNX: a converter by its name, a file a family."""

from tvm_neuron.frontend.xla.operators import (
    collectives,
    control,
    elementwise,
    inverse_error,
    legalised,
    norms,
    order,
    positions,
    precision,
    products,
    random,
    reductions,
    shapes,
    windows,
)
from tvm_neuron.frontend.xla.region import Converter

CONVERTERS: dict[str, Converter] = {
    **elementwise.CONVERTERS,
    **inverse_error.CONVERTERS,
    **legalised.CONVERTERS,
    **norms.CONVERTERS,
    **shapes.CONVERTERS,
    **products.CONVERTERS,
    **windows.CONVERTERS,
    **reductions.CONVERTERS,
    **positions.CONVERTERS,
    **precision.CONVERTERS,
    **order.CONVERTERS,
    **collectives.CONVERTERS,
    **control.CONVERTERS,
    **random.CONVERTERS,
}
