"""What LLVM makes of kernels whose loops it vectorises itself."""

import numpy as np
import onnx
import tvm
from onnx import numpy_helper

from tests.onnx_models import reference
from tvm_neuron import BuildOptions, relay

FEW_TAPS_IN_PADDING = """<ir_version: 10, opset_import: ["": 13]>
    g (int32[8] x) => (float[4, 4, 2, 1] y) <int64[4] shape = {4, 1, 2, 1}, int64[2] starts = {0, 3},
        int64[2] ends = {4, -2147483648}, int64[2] axes = {-4, 1}, int64[2] steps = {1, -1}>
    { negative = Neg(x)  image = Reshape(negative, shape)  floats = Cast<to: int = 1>(image)
      five = Conv<dilations: ints = [12, 6], pads: ints = [24, 0, 24, 0]>(floats, weights, bias)
      y = Slice(five, starts, ends, axes, steps) }"""


def test_straight_code_is_not_vectorised_into_what_llvm_refuses() -> None:
    """Found by random models: channels in another order of a convolution that mostly sees its padding."""
    rng = np.random.default_rng(0)
    model = onnx.parser.parse_model(FEW_TAPS_IN_PADDING)
    for name, shape in {"weights": (5, 1, 5, 1), "bias": (5,)}.items():
        model.graph.initializer.append(numpy_helper.from_array(rng.standard_normal(shape, dtype=np.float32), name))
    x = rng.integers(-50, 50, 8, dtype=np.int32)
    mod, params = relay.frontend.from_onnx(model)
    library = relay.build(mod, target="neuron", params=params, options=BuildOptions(on_cpu=("*",)))
    executor = relay.graph_executor.GraphModule(library["default"](tvm.cpu()))
    executor.run(x=x)
    (wanted,) = reference(model, {"x": x})
    # sums of at most five products, in float32, of numbers up to 150
    np.testing.assert_allclose(executor.get_output(0).numpy(), wanted, rtol=1e-5, atol=1e-4)
