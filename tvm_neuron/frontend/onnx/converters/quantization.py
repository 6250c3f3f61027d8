"""Quantised tensors: scale and zero point by tensor, by axis or by block, as arithmetic on float32 or int32."""

from typing import Any

from tvm import relax

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.onnx.converters.casts import converted, plain, target
from tvm_neuron.frontend.onnx.converters.converter import Converter, Node
from tvm_neuron.frontend.onnx.converters.padding import padding
from tvm_neuron.frontend.onnx.converters.small_floats import FORMATS
from tvm_neuron.frontend.onnx.narrow import Narrow

_RANGES = {
    "uint2": (0, 3), "int2": (-2, 1), "uint4": (0, 15), "int4": (-8, 7), "uint8": (0, 255), "int8": (-128, 127),
    "uint16": (0, 65535), "int16": (-32768, 32767),
}  # fmt: skip


def _quantize_linear(node: Node) -> Any:
    """saturate(round_to_even(x / y_scale) + y_zero_point)."""
    axis, block = node.attrs.get("axis", 1), node.attrs.get("block_size", 0)
    dtype = _result_dtype(node, 2)
    scale = plain(node, 1)
    working = "float32"
    if node.attrs.get("precision"):
        working = target(node.attrs["precision"])
    elif node.dtype() in ("float16", "bfloat16") and str(scale.ty.dtype) == node.dtype():
        working = node.dtype()
    x = node.emit(relax.op.astype(plain(node, 0), working))
    scale = _spread(node, node.emit(relax.op.astype(scale, working)), axis, block)
    ratio = node.emit(relax.op.divide(x, scale))
    if dtype in FORMATS:
        if dtype == "float4_e2m1fn" and node.given(2) is not None:
            point = node.emit(relax.op.astype(plain(node, 2), working))
            ratio = node.emit(relax.op.add(ratio, _spread(node, point, axis, block)))
        return converted(node, ratio, dtype, bool(node.attrs.get("saturate", 1)))
    point = None
    if node.given(2) is not None:
        point = _spread(node, node.emit(relax.op.astype(plain(node, 2), "int32")), axis, block)
    return _saturated(node, ratio, point, dtype)


def _dequantize_linear(node: Node) -> relax.Expr:
    """(x - x_zero_point) * x_scale, computed in float32."""
    axis, block = node.attrs.get("axis", 1), node.attrs.get("block_size", 0)
    x = node.emit(relax.op.astype(plain(node, 0), "float32"))
    if node.given(2) is not None:
        point = node.emit(relax.op.astype(plain(node, 2), "float32"))
        x = node.emit(relax.op.subtract(x, _spread(node, point, axis, block)))
    scale = plain(node, 1)
    factor = _spread(node, node.emit(relax.op.astype(scale, "float32")), axis, block)
    dtype = target(node.attrs["output_dtype"]) if node.attrs.get("output_dtype") else str(scale.ty.dtype)
    return relax.op.astype(node.emit(relax.op.multiply(x, factor)), dtype)


def _qlinear_matmul(node: Node) -> relax.Expr:
    """saturate((a - a_zero_point) @ (b - b_zero_point) * (a_scale * b_scale / y_scale) + y_zero_point)."""
    a = _centred(node, 0, 2, (-1,) if node.given(2) is not None and len(node.shape(2)) == 1 else ())
    b = _centred(node, 3, 5, ())
    product = node.emit(relax.op.matmul(a, b, out_dtype="int32"))
    scales = [node.emit(relax.op.astype(node.inputs[at], "float32")) for at in (1, 4, 6)]
    if len(scales[0].ty.shape) == 1 and int(scales[0].ty.shape[0]) > 1:
        scales[0] = node.emit(relax.op.expand_dims(scales[0], -1))
    factor = node.emit(relax.op.divide(node.emit(relax.op.multiply(scales[0], scales[1])), scales[2]))
    scaled = node.emit(relax.op.multiply(node.emit(relax.op.astype(product, "float32")), _scalar(node, factor)))
    return _requantized(node, scaled, 7)


def _qgemm(node: Node) -> relax.Expr:
    """saturate(((a - a_zero_point) @ (b - b_zero_point) + C) * (alpha * a_scale * b_scale / y_scale) + y_zero_point).

    Without y_scale the result is a float.
    """
    a, b = _centred(node, 0, 2, ()), _centred(node, 3, 5, (-1,) if node.attrs.get("transB") else ())
    a, b = (
        node.emit(relax.op.permute_dims(each)) if node.attrs.get(name) else each
        for each, name in ((a, "transA"), (b, "transB"))
    )
    total = node.emit(relax.op.matmul(a, b, out_dtype="int32"))
    total = total if node.given(6) is None else node.emit(relax.op.add(total, node.inputs[6]))
    factor = node.emit(relax.op.multiply(_scalar(node, node.inputs[1]), _scalar(node, node.inputs[4])))
    factor = node.emit(relax.op.multiply(factor, relax.const(node.attrs.get("alpha", 1.0), "float32")))
    if node.given(7) is not None:
        factor = node.emit(relax.op.divide(factor, _scalar(node, node.inputs[7])))
    scaled = node.emit(relax.op.multiply(node.emit(relax.op.astype(total, "float32")), factor))
    return scaled if node.given(8) is None else _requantized(node, scaled, 8)


def _conv_integer(node: Node) -> relax.Expr:
    """The convolution of x - x_zero_point with w - w_zero_point in int32."""
    x = _centred(node, 0, 2, ())
    return _convolution(node, x, _centred(node, 1, 3, tuple(range(1, len(node.shape(1))))))


def _qlinear_conv(node: Node) -> relax.Expr:
    """saturate((conv(x - x_zero_point, w - w_zero_point) + B) * (x_scale * w_scale / y_scale) + y_zero_point)."""
    rank = len(node.shape(3))
    after_channel = list(range(1, rank - 1))
    total = _convolution(node, _centred(node, 0, 2, ()), _centred(node, 3, 5, tuple(range(1, rank))))
    if node.given(8) is not None:
        bias = node.emit(relax.op.expand_dims(node.inputs[8], after_channel))
        total = node.emit(relax.op.add(total, bias))
    scales = [_scalar(node, node.emit(relax.op.astype(node.inputs[at], "float32"))) for at in (1, 4, 6)]
    factor = node.emit(relax.op.divide(node.emit(relax.op.multiply(scales[0], scales[1])), scales[2]))
    if factor.ty.shape:
        factor = node.emit(relax.op.expand_dims(factor, after_channel))
    scaled = node.emit(relax.op.multiply(node.emit(relax.op.astype(total, "float32")), factor))
    return _requantized(node, scaled, 7)


def _convolution(node: Node, x: relax.Expr, w: relax.Expr) -> relax.Expr:
    spatial = len(w.ty.shape) - 2
    layouts = {1: ("NCW", "OIW"), 2: ("NCHW", "OIHW"), 3: ("NCDHW", "OIDHW")}
    if spatial not in layouts:
        raise ModelError(f"it has {spatial} spatial axes; 1, 2 and 3 are convolved")
    sizes = [int(dim) for dim in x.ty.shape][2:]
    kernel = [int(dim) for dim in w.ty.shape][2:]
    strides = [int(step) for step in node.attrs.get("strides", (1,) * spatial)]
    dilations = [int(step) for step in node.attrs.get("dilations", (1,) * spatial)]
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    pads = padding(node.attrs, sizes, extents, strides)
    options = {"strides": strides, "padding": pads, "dilation": dilations, "groups": int(node.attrs.get("group", 1))}
    convolve = {1: relax.op.nn.conv1d, 2: relax.op.nn.conv2d, 3: relax.op.nn.conv3d}[spatial]
    data, kernel_layout = layouts[spatial]
    return node.emit(convolve(x, w, **options, data_layout=data, kernel_layout=kernel_layout, out_dtype="int32"))


def _requantized(node: Node, scaled: relax.Expr, position: int) -> relax.Expr:
    """round_to_even(scaled + zero point), saturated, in the zero point's dtype."""
    point = _scalar(node, node.inputs[position])
    shifted = node.emit(relax.op.add(scaled, node.emit(relax.op.astype(point, "float32"))))
    return _saturated(node, shifted, None, node.dtype(position))


def _matmul_integer(node: Node) -> relax.Expr:
    """(a - a_zero_point) @ (b - b_zero_point) in int32."""
    rows = (-1,) if node.given(2) is not None and len(node.shape(2)) == 1 else ()
    return relax.op.matmul(_centred(node, 0, 2, rows), _centred(node, 1, 3, ()), out_dtype="int32")


def _centred(node: Node, position: int, point: int, new_axes: tuple[int, ...]) -> relax.Expr:
    """An operand minus its zero point, in int32."""
    x = node.emit(relax.op.astype(node.inputs[position], "int32"))
    if node.given(point) is None:
        return x
    zero = node.emit(relax.op.astype(_scalar(node, node.inputs[point]), "int32"))
    if new_axes and len(zero.ty.shape) == 1:
        zero = node.emit(relax.op.expand_dims(zero, list(new_axes)))
    return node.emit(relax.op.subtract(x, zero))


def _saturated(node: Node, value: relax.Expr, point: relax.Expr | None, dtype: str) -> Any:
    low, high = _RANGES[dtype]
    whole = node.emit(relax.op.round(value))
    if point is not None:
        whole = node.emit(relax.op.add(whole, node.emit(relax.op.astype(point, value.ty.dtype))))
    clipped = node.emit(relax.op.clip(whole, low, high))
    return converted(node, clipped, dtype)


def _result_dtype(node: Node, point: int) -> str:
    if node.given(point) is not None:
        value = node.inputs[point]
        return value.dtype if isinstance(value, Narrow) else str(value.ty.dtype)
    return target(node.attrs["output_dtype"]) if node.attrs.get("output_dtype") else "uint8"


def _scalar(node: Node, value: relax.Expr) -> relax.Expr:
    """The only element of a vector of one element as a scalar; anything else as it is."""
    is_one = len(value.ty.shape) == 1 and int(value.ty.shape[0]) == 1
    return node.emit(relax.op.reshape(value, ())) if is_one else value


def _spread(node: Node, value: relax.Expr, axis: int, block: int) -> relax.Expr:
    """A scale or zero point such that it broadcasts with the first operand."""
    value = _scalar(node, value)
    shape = node.shape(0)
    if not value.ty.shape:
        return value
    axis %= len(shape)
    if block:
        if any(int(a) != b for at, (a, b) in enumerate(zip(value.ty.shape, shape, strict=True)) if at != axis):
            raise ModelError(f"its scale of shape {list(value.ty.shape)} does not fit blocks of {list(shape)}")
        repeated = node.emit(relax.op.repeat(value, block, axis))
        return node.emit(relax.op.strided_slice(repeated, [axis], [0], [shape[axis]]))
    return node.emit(relax.op.reshape(value, [-1 if at == axis else 1 for at in range(len(shape))]))


CONVERTERS: dict[str, Converter] = {
    "ConvInteger": _conv_integer,
    "DequantizeLinear": _dequantize_linear,
    "MatMulInteger": _matmul_integer,
    "QLinearConv": _qlinear_conv,
    "QGemm": _qgemm,
    "QLinearMatMul": _qlinear_matmul,
    "QuantizeLinear": _quantize_linear,
}
