"""request: what all simulators are asked."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import onnx

from benchmarks.simulators.graph import graph
from benchmarks.simulators.layers import layers, with_shapes
from tvm_neuron.hw import load_device

CHIP = "inf2"  # its matrix engine is the array of 128 x 128
_BYTES = 2  # of a value in bf16


def request(model: onnx.ModelProto, file: Path) -> dict[str, Any]:
    """What all are asked: the network in the forms that they take, the array, and the memories of one core of `CHIP`.

    Buffers and bandwidth are counted in values, so that those who count bytes or words of 8 bits get the same.
    """
    onnx.save(with_shapes(model), file)
    device = load_device(CHIP)
    array = {
        "rows": device.pe_rows,
        "columns": device.pe_columns,
        "buffer_kb": device.sbuf_bytes // 3 // _BYTES // 1024,  # one each for inputs, weights and results
        "words_per_cycle": int(device.dram_bytes_per_second / device.pe_clock_hz / _BYTES),
    }
    listed = [asdict(layer) for layer in layers(model)]
    return {"onnx": str(file), "chip": CHIP, "layers": listed, "graph": graph(model), "array": array}
