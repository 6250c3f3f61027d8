"""KnownSizes: TVM's converters of TFLite's operators, where sizes are numbers as far as they are known.

Files of models whose batch was left open compute shapes from shapes (SHAPE, GATHER, REDUCE_PROD, PACK, RESHAPE); TVM's
importer takes such shapes for tensors that only a run knows. Two converters of TVM's that fail have others here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import tflite
from tvm import relax
from tvm.relax.frontend.tflite.tflite_frontend import OperatorConverter


@dataclass(frozen=True)
class _Known:
    """A buffer of the file that is not in it."""

    value: np.ndarray

    def DataAsNumpy(self) -> np.ndarray:  # noqa: N802 - TFLite's names
        return np.frombuffer(self.value.tobytes(), np.uint8)

    def DataLength(self) -> int:  # noqa: N802
        return self.value.nbytes


class KnownSizes(OperatorConverter):
    """Operators whose operands are all known become constants, of which the others read."""

    _SUPPORTED_QUANTIZED_OPS = OperatorConverter._SUPPORTED_QUANTIZED_OPS | {"SHAPE"}  # which reads no elements

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._known: dict[int, _Known] = {}
        for kind, fold in (("SHAPE", self._shape), ("STRIDED_SLICE", self._slice), ("PACK", self._pack),
                           ("CONCATENATION", self._concatenation), ("GATHER", self._gather),
                           ("REDUCE_PROD", self._prod), ("ADD", partial(self._pair, np.add, tflite.AddOptions)),
                           ("MUL", partial(self._pair, np.multiply, tflite.MulOptions)),
                           ("SUB", partial(self._pair, np.subtract, tflite.SubOptions))):  # fmt: skip
            self.convert_map[kind] = partial(self._folded, self.convert_map[kind], fold)
        self.convert_map["EXPAND_DIMS"] = self._expand_dims
        self.convert_map["TRANSPOSE_CONV"] = self._transpose_conv

    def get_tensors(self, tensors_idx_list: Any) -> list[Any]:
        """As in TVM, with the buffers of what is known by now."""
        found: list[Any] = super().get_tensors(tensors_idx_list)
        for tensor in found:
            tensor.buffer = self._known.get(tensor.tensor_idx, tensor.buffer)
        return found

    def _folded(self, convert: Callable[..., Any], fold: Callable[[Any, Any], Any], op: Any) -> Any:
        (output,) = self.get_output_tensors(op)
        if output.tensor_idx in self.subgraph.OutputsAsNumpy():
            return convert(op=op)
        value = fold(op, self.get_input_tensors(op))
        if value is None:
            return convert(op=op)
        self._known[output.tensor_idx] = _Known(np.asarray(value, self.get_tensor_type_as_numpy(output)))
        return None  # by which TVM knows that nothing is to be computed

    def _expand_dims(self, op: Any) -> relax.Expr:
        """TVM's own calls Relax with Relay's arguments."""
        data, axis = self.get_input_tensors(op)
        return relax.op.expand_dims(self.get_tensor_expr(data), int(self.get_tensor_value(axis).item()))

    def _transpose_conv(self, op: Any) -> Any:
        """With channels first: TVM has no kernel for the form with channels last that its own makes."""
        sizes, weights, data, *bias = self.get_input_tensors(op)
        (output,) = self.get_output_tensors(op)
        options = self._options(op, tflite.TransposeConvOptions)
        strides = options.StrideH(), options.StrideW()
        kernel = relax.op.permute_dims(self._as_float(weights), [3, 0, 1, 2])  # of OHWI
        given = relax.op.permute_dims(self._as_float(data), [0, 3, 1, 2])
        image, sides = self.get_tensor_shape(data)[1:3], self.get_tensor_shape(weights)[1:3]
        whole = [(int(n) - 1) * step + int(side) for n, step, side in zip(image, strides, sides, strict=True)]
        cut = [size - int(out) for size, out in zip(whole, self.get_tensor_value(sizes)[1:3], strict=True)]
        made = relax.op.nn.conv2d_transpose(
            given, kernel, strides, [max(n, 0) // 2 for n in cut] + [(max(n, 0) + 1) // 2 for n in cut],
            output_padding=[max(-n, 0) for n in cut],
        )  # fmt: skip
        made = relax.op.permute_dims(made, [0, 2, 3, 1])
        if bias:
            made = relax.op.add(made, self._as_float(bias[0]))
        made = self.convert_fused_activation_function(self.bb.normalize(made), options.FusedActivationFunction())
        return self.quantize(made, output) if output.qnn_params else made

    def _as_float(self, tensor: Any) -> relax.Expr:
        found = self.get_tensor_expr(tensor)
        return self.bb.normalize(self.dequantize(found, tensor) if tensor.qnn_params else found)

    def _shape(self, _op: Any, tensors: Any) -> Any:
        shape = self.get_tensor_expr(tensors[0]).ty.shape
        sizes = [getattr(size, "value", None) for size in shape] if isinstance(shape, relax.ShapeExpr) else [None]
        return None if None in sizes else sizes

    def _slice(self, op: Any, tensors: Any) -> Any:
        values = self._values(tensors)
        options = self._options(op, tflite.StridedSliceOptions)
        if values is None or values[0].ndim != 1 or options.EllipsisMask() or options.NewAxisMask():
            return None
        data, (begin,), (end,), (step,) = values
        if options.ShrinkAxisMask():
            return data[begin]
        return data[None if options.BeginMask() else begin : None if options.EndMask() else end : step]

    def _pack(self, op: Any, tensors: Any) -> Any:
        values = self._values(tensors)
        return None if values is None else np.stack(values, self._options(op, tflite.PackOptions).Axis())

    def _concatenation(self, op: Any, tensors: Any) -> Any:
        values = self._values(tensors)
        return None if values is None else np.concatenate(values, self._options(op, tflite.ConcatenationOptions).Axis())

    def _gather(self, op: Any, tensors: Any) -> Any:
        values, options = self._values(tensors), self._options(op, tflite.GatherOptions)
        if values is None or values[0].ndim != 1 or options.BatchDims():
            return None
        return values[0][values[1]]

    def _prod(self, op: Any, tensors: Any) -> Any:
        values = self._values(tensors)
        if values is None:
            return None
        data, axes = values
        keeps = bool(self._options(op, tflite.ReducerOptions).KeepDims())
        return np.prod(data, tuple(np.ravel(axes).tolist()), keepdims=keeps)

    def _pair(self, combine: np.ufunc, kind: type, op: Any, tensors: Any) -> Any:
        values = self._values(tensors)
        if values is None or any(value.dtype.kind != "i" for value in values) or tensors[0].qnn_params:
            return None
        return None if self._options(op, kind).FusedActivationFunction() else combine(*values)

    def _values(self, tensors: Any) -> list[np.ndarray] | None:
        if any(self.has_expr(tensor.tensor_idx) or not tensor.buffer.DataLength() for tensor in tensors):
            return None
        return [self.get_tensor_value(tensor) for tensor in tensors]

    @staticmethod
    def _options(op: Any, kind: type) -> Any:
        found, table = kind(), op.BuiltinOptions()
        found.Init(table.Bytes, table.Pos)
        return found
