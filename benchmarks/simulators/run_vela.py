"""Vela over a network in int8, run by its own Python: `run_vela.py REQUEST.json FOLDER`; prints the cycles.

Vela takes TFLite files, so the network's graph is written as one, with random weights.
"""

import contextlib
import csv
import io
import json
import sys
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
from ethosu.vela import vela
from ethosu.vela.tflite import (
    AddOptions,
    Buffer,
    Conv2DOptions,
    FullyConnectedOptions,
    Model,
    Operator,
    OperatorCode,
    Pool2DOptions,
    QuantizationParameters,
    SubGraph,
    Tensor,
)
from ethosu.vela.tflite.BuiltinOperator import BuiltinOperator
from ethosu.vela.tflite.BuiltinOptions import BuiltinOptions
from ethosu.vela.tflite.TensorType import TensorType

_CODES = ("CONV_2D", "MAX_POOL_2D", "AVERAGE_POOL_2D", "ADD", "FULLY_CONNECTED")
_LARGEST = "ethos-u85-2048"


class Writer:
    """One TFLite file."""

    def __init__(self) -> None:
        self.builder = flatbuffers.Builder(1 << 20)
        self.random = np.random.default_rng(0)
        self.buffers, self.tensors, self.operators = [self._buffer(b"")], [], []
        self.numbers: dict[str, int] = {}

    def tensor(self, name: str, shape: list[int], dtype: str = "int8", data: bool = False) -> int:
        """The number of a tensor, which is written when it is first named."""
        if name in self.numbers:
            return self.numbers[name]
        b, place = self.builder, 0
        if data:
            self.buffers.append(self._buffer(self.random.integers(-100, 100, shape).astype(dtype).tobytes()))
            place = len(self.buffers) - 1
        text, dims = b.CreateString(name), b.CreateNumpyVector(np.array(shape, np.int32))
        scale, zero = b.CreateNumpyVector(np.float32([0.02])), b.CreateNumpyVector(np.int64([0]))
        QuantizationParameters.Start(b)
        QuantizationParameters.AddScale(b, scale)
        QuantizationParameters.AddZeroPoint(b, zero)
        quantised = QuantizationParameters.End(b)
        Tensor.Start(b)
        Tensor.AddShape(b, dims)
        Tensor.AddType(b, getattr(TensorType, dtype.upper()))
        Tensor.AddBuffer(b, place)
        Tensor.AddName(b, text)
        Tensor.AddQuantization(b, quantised)
        self.tensors.append(Tensor.End(b))
        self.numbers[name] = len(self.tensors) - 1
        return self.numbers[name]

    def node(self, node: dict[str, Any]) -> None:
        """One operator of the request's graph."""
        kind, name = node["kind"], node["output"]
        sources = [
            self.tensor(source, shape) for source, shape in zip(node["inputs"], node["input_shapes"], strict=True)
        ]
        if "weights" in node:
            sources.append(self.tensor(f"{name}/weights", node["weights"], data=True))
            sources.append(self.tensor(f"{name}/bias", [node["weights"][0]], "int32", data=True))
        target = self.tensor(name, node["output_shape"])
        b, options = self.builder, self._options(node)
        lists = [b.CreateNumpyVector(np.array(numbers, np.int32)) for numbers in (sources, [target])]
        names = ("Conv2DOptions", "Pool2DOptions", "Pool2DOptions", "AddOptions", "FullyConnectedOptions")
        Operator.Start(b)
        Operator.AddOpcodeIndex(b, _CODES.index(kind))
        Operator.AddInputs(b, lists[0])
        Operator.AddOutputs(b, lists[1])
        Operator.AddBuiltinOptionsType(b, getattr(BuiltinOptions, names[_CODES.index(kind)]))
        Operator.AddBuiltinOptions(b, options)
        self.operators.append(Operator.End(b))

    def finish(self, first: str, last: str) -> bytes:
        """The file, with its one input and one output."""
        b = self.builder
        ends = [b.CreateNumpyVector(np.int32([self.numbers[name]])) for name in (first, last)]
        tensors, operators, buffers = map(self._vector, (self.tensors, self.operators, self.buffers))
        SubGraph.Start(b)
        SubGraph.AddTensors(b, tensors)
        SubGraph.AddInputs(b, ends[0])
        SubGraph.AddOutputs(b, ends[1])
        SubGraph.AddOperators(b, operators)
        graphs = self._vector([SubGraph.End(b)])
        codes = []
        for name in _CODES:
            OperatorCode.Start(b)
            OperatorCode.AddDeprecatedBuiltinCode(b, getattr(BuiltinOperator, name))
            OperatorCode.AddBuiltinCode(b, getattr(BuiltinOperator, name))
            OperatorCode.AddVersion(b, 3 if name == "CONV_2D" else 2)
            codes.append(OperatorCode.End(b))
        codes_at = self._vector(codes)
        Model.Start(b)
        Model.AddVersion(b, 3)
        Model.AddOperatorCodes(b, codes_at)
        Model.AddSubgraphs(b, graphs)
        Model.AddBuffers(b, buffers)
        b.Finish(Model.End(b), b"TFL3")
        return bytes(b.Output())

    def _options(self, node: dict[str, Any]) -> int:
        b, kind = self.builder, node["kind"]
        if kind in ("ADD", "FULLY_CONNECTED"):
            plain = AddOptions if kind == "ADD" else FullyConnectedOptions
            plain.Start(b)
            plain.AddFusedActivationFunction(b, int(node["relu"]))
            return plain.End(b)
        options = Conv2DOptions if kind == "CONV_2D" else Pool2DOptions
        options.Start(b)
        options.AddPadding(b, 0 if node["same"] else 1)
        options.AddStrideW(b, node["stride"])
        options.AddStrideH(b, node["stride"])
        options.AddFusedActivationFunction(b, int(node["relu"]))
        if kind == "CONV_2D":
            options.AddDilationWFactor(b, 1)
            options.AddDilationHFactor(b, 1)
        else:
            options.AddFilterHeight(b, node["kernel"])
            options.AddFilterWidth(b, node["kernel"])
        return options.End(b)

    def _buffer(self, data: bytes) -> int:
        content = self.builder.CreateByteVector(data) if data else 0
        Buffer.Start(self.builder)
        if data:
            Buffer.AddData(self.builder, content)
        return Buffer.End(self.builder)

    def _vector(self, offsets: list[int]) -> int:
        self.builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            self.builder.PrependUOffsetTRelative(offset)
        return self.builder.EndVector()


def main() -> None:
    """Vela's largest array has 2,048 multipliers in int8; the array that is asked for is none of its."""
    request, folder = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    writer = Writer()
    for node in request["graph"]:
        writer.node(node)
    file = folder / "network.tflite"
    file.write_bytes(writer.finish(request["graph"][0]["inputs"][0], request["graph"][-1]["output"]))
    with contextlib.redirect_stdout(io.StringIO()):
        vela.main([str(file), "--accelerator-config", _LARGEST, "--output-dir", str(folder)])
    with next(folder.glob("*summary*.csv")).open() as table:
        (row,) = csv.DictReader(table)
    print(json.dumps({"cycles": round(float(row["cycles_total"])), "array": _LARGEST}))


if __name__ == "__main__":
    main()
