"""Arithmetic of floats on the CPU that TVM's simplifier would do as with numbers that have no end and no rounding."""

import numpy as np
import onnx
import pytest
import tvm

from tests.onnx_models import reference
from tvm_neuron import BuildOptions, relay

# 12,582,912 is 1.5 * 2 ** 23: floats beside it have no fraction
_FORMS = [
    "a = Add(x, c)  r = Sub(a, c)", "a = Add(x, y)  r = Sub(a, y)", "a = Add(x, y)  r = Sub(a, x)",
    "a = Add(x, y)  r = Sub(x, a)", "a = Sub(x, y)  r = Sub(x, a)", "r = Sub(x, x)", "a = Sub(x, x)  r = Add(a, x)",
    "a = Min(x, y)  r = Sub(a, x)", "a = Max(x, y)  r = Sub(y, a)", "q = Less(x, y)  a = Where(q, x, y)  r = Sub(a, x)",
    "a = Sub(c, x)  b = Add(a, x)  r = Sub(b, x)", "a = Mul(x, c)  r = Div(a, c)", "a = Add(x, c)  r = Add(a, d)",
    "r = Max(x, n)", "r = Min(n, x)", "a = Neg(x)  b = Max(a, n)  r = Add(b, c)", "r = Sign(x)",
    "q = Equal(x, x)  r = Cast<to: int = 1>(q)", "q = LessOrEqual(x, x)  r = Cast<to: int = 1>(q)",
    "a = Add(x, c)  q = Equal(a, a)  p = Not(q)  r = Where(p, y, x)", "q = Less(x, x)  r = Cast<to: int = 1>(q)",
]  # fmt: skip


@pytest.mark.parametrize("form", _FORMS)
def test_as_onnxruntime(form: str) -> None:
    rng = np.random.default_rng(4)
    special = np.float32([np.inf, -np.inf, np.nan, 0, 1])
    sizes = 10.0 ** rng.integers(-6, 7, (2, 200))
    numbers = (rng.standard_normal((2, 200)) * sizes).astype(np.float32)
    x, y = np.where(rng.random((2, 200)) < 0.2, rng.choice(special, (2, 200)), numbers)
    y[:20] = x[:20]
    model = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 19]> g (float[200] x, float[200] y) => (float[200] r)
        <float c = {{12582912}}, float d = {{-12582911}}, float n = {{nan}}> {{ unused = Add(x, y)  {form} }}"""
    )
    mod, params = relay.frontend.from_onnx(model)
    library = relay.build(mod, target="neuron", params=params, options=BuildOptions(on_cpu=("*",)))
    executor = relay.graph_executor.GraphModule(library["default"](tvm.cpu()))
    executor.run(x=x, y=y)
    np.testing.assert_array_equal(executor.get_output(0).numpy(), reference(model, {"x": x, "y": y})[0])
