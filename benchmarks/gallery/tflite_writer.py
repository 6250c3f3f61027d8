"""Writes TFLite files: tensors and operators, one after the other."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import flatbuffers
import numpy as np
import tflite

_TYPES = {"float32": 0, "int32": 2, "uint8": 3, "int8": 9}


@dataclass
class _Tensor:
    name: str
    shape: Sequence[int]
    dtype: str
    data: np.ndarray | None
    scale: float
    zero: int


@dataclass
class Writer:
    """A model under construction; tensors are numbered as they are made."""

    tensors: list[_Tensor] = field(default_factory=list)
    operators: list[tuple[str, str, dict[str, Any], list[int], list[int]]] = field(default_factory=list)

    def tensor(self, name: str, shape: Sequence[int], dtype: str = "float32", scale: float = 0.0, zero: int = 0) -> int:
        """An activation; with a scale it is quantised."""
        self.tensors.append(_Tensor(name, shape, dtype, None, scale, zero))
        return len(self.tensors) - 1

    def constant(self, name: str, data: np.ndarray, scale: float = 0.0, zero: int = 0) -> int:
        """A weight."""
        self.tensors.append(_Tensor(name, data.shape, data.dtype.name, data, scale, zero))
        return len(self.tensors) - 1

    def operator(self, code: str, options: str, values: dict[str, Any], inputs: Sequence[int], output: int) -> None:
        """An operator `code` with a table `options` of values: `CONV_2D`, `Conv2DOptions`."""
        self.operators.append((code, options, values, list(inputs), [output]))

    def finish(self, inputs: Sequence[int], outputs: Sequence[int]) -> bytes:
        """The file."""
        fb = flatbuffers.Builder(1 << 20)
        buffers = [self._buffer(fb, None), *(self._buffer(fb, tensor.data) for tensor in self.tensors)]
        tensors = [self._tensor(fb, number + 1, tensor) for number, tensor in enumerate(self.tensors)]
        codes = list(dict.fromkeys(code for code, *_ in self.operators))
        operators = [self._operator(fb, codes.index(code), *rest) for code, *rest in self.operators]
        name = fb.CreateString("main")
        parts = [
            _vector(fb, tflite.SubGraphStartTensorsVector, tensors),
            _ints(fb, tflite.SubGraphStartInputsVector, inputs),
            _ints(fb, tflite.SubGraphStartOutputsVector, outputs),
            _vector(fb, tflite.SubGraphStartOperatorsVector, operators),
        ]
        tflite.SubGraphStart(fb)
        for name_of, part in zip(("Tensors", "Inputs", "Outputs", "Operators"), parts, strict=True):
            getattr(tflite, f"SubGraphAdd{name_of}")(fb, part)
        tflite.SubGraphAddName(fb, name)
        graphs = _vector(fb, tflite.ModelStartSubgraphsVector, [tflite.SubGraphEnd(fb)])
        known = _vector(fb, tflite.ModelStartOperatorCodesVector, [_code(fb, code) for code in codes])
        stored = _vector(fb, tflite.ModelStartBuffersVector, buffers)
        tflite.ModelStart(fb)
        tflite.ModelAddVersion(fb, 3)
        tflite.ModelAddOperatorCodes(fb, known)
        tflite.ModelAddSubgraphs(fb, graphs)
        tflite.ModelAddBuffers(fb, stored)
        fb.Finish(tflite.ModelEnd(fb), b"TFL3")
        return bytes(fb.Output())

    @staticmethod
    def _buffer(fb: Any, data: np.ndarray | None) -> int:
        stored = None
        if data is not None:
            stored = fb.CreateByteVector(np.ascontiguousarray(data).tobytes())
        tflite.BufferStart(fb)
        if stored is not None:
            tflite.BufferAddData(fb, stored)
        return int(tflite.BufferEnd(fb))

    @staticmethod
    def _tensor(fb: Any, buffer: int, tensor: _Tensor) -> int:
        name, shape = fb.CreateString(tensor.name), _ints(fb, tflite.TensorStartShapeVector, tensor.shape)
        quantised = None
        if tensor.scale:
            tflite.QuantizationParametersStartScaleVector(fb, 1)
            fb.PrependFloat32(tensor.scale)
            scales = fb.EndVector()
            tflite.QuantizationParametersStartZeroPointVector(fb, 1)
            fb.PrependInt64(tensor.zero)
            zeros = fb.EndVector()
            tflite.QuantizationParametersStart(fb)
            tflite.QuantizationParametersAddScale(fb, scales)
            tflite.QuantizationParametersAddZeroPoint(fb, zeros)
            quantised = tflite.QuantizationParametersEnd(fb)
        tflite.TensorStart(fb)
        tflite.TensorAddShape(fb, shape)
        tflite.TensorAddType(fb, _TYPES[tensor.dtype])
        tflite.TensorAddBuffer(fb, buffer)
        tflite.TensorAddName(fb, name)
        if quantised is not None:
            tflite.TensorAddQuantization(fb, quantised)
        return int(tflite.TensorEnd(fb))

    @staticmethod
    def _operator(
        fb: Any, code: int, options: str, values: dict[str, Any], inputs: list[int], outputs: list[int]
    ) -> int:
        vectors = {
            key: _ints(fb, getattr(tflite, f"{options}Start{key}Vector"), value)
            for key, value in values.items()
            if isinstance(value, list)
        }
        getattr(tflite, f"{options}Start")(fb)
        for key, value in (values | vectors).items():
            getattr(tflite, f"{options}Add{key}")(fb, value)
        table = getattr(tflite, f"{options}End")(fb)
        taken = _ints(fb, tflite.OperatorStartInputsVector, inputs)
        given = _ints(fb, tflite.OperatorStartOutputsVector, outputs)
        tflite.OperatorStart(fb)
        tflite.OperatorAddOpcodeIndex(fb, code)
        tflite.OperatorAddInputs(fb, taken)
        tflite.OperatorAddOutputs(fb, given)
        tflite.OperatorAddBuiltinOptionsType(fb, getattr(tflite.BuiltinOptions, options))
        tflite.OperatorAddBuiltinOptions(fb, table)
        return int(tflite.OperatorEnd(fb))


def _code(fb: Any, name: str) -> int:
    number = getattr(tflite.BuiltinOperator, name)
    tflite.OperatorCodeStart(fb)
    tflite.OperatorCodeAddDeprecatedBuiltinCode(fb, number)
    tflite.OperatorCodeAddBuiltinCode(fb, number)
    tflite.OperatorCodeAddVersion(fb, 1)
    return int(tflite.OperatorCodeEnd(fb))


def _ints(fb: Any, start: Any, values: Sequence[int]) -> int:
    start(fb, len(values))
    for value in reversed(values):
        fb.PrependInt32(int(value))
    return int(fb.EndVector())


def _vector(fb: Any, start: Any, offsets: Sequence[int]) -> int:
    start(fb, len(offsets))
    for offset in reversed(offsets):
        fb.PrependUOffsetTRelative(offset)
    return int(fb.EndVector())
