"""What moves between the host and NeuronCores: counted while a library runs, and told by its report."""

from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import tvm
from onnx import helper
from rich.console import Console

import tvm_neuron
from tests.onnx_models import make_model
from tvm_neuron import relay
from tvm_neuron.profile.tables import render


def shown(library: Any) -> str:
    out = StringIO()
    Console(width=200, file=out).print(render(tvm_neuron.report(library)))
    return out.getvalue()


def test_only_what_the_core_needs_moves(library: Path) -> None:
    """NonZero on the CPU reads x where it is; the product needs x and gives y, in float32."""
    loaded = tvm.runtime.load_module(str(library))
    executor = loaded["default"](tvm.cpu())
    executor.run(x=np.random.default_rng(3).standard_normal((4, 64), dtype=np.float32))
    moved = executor.moved
    assert (moved.calls, moved.tensors_to_core, moved.bytes_to_core) == (1, 1, 4 * 64 * 4)
    assert (moved.tensors_from_core, moved.bytes_from_core) == (1, 4 * 8 * 4)
    rows = tvm_neuron.report(loaded).transfers
    assert [(row.tensor, row.bytes) for row in rows] == [("x", moved.bytes_to_core), ("y", moved.bytes_from_core)]
    device = tvm_neuron.hw.load_device("inf1")
    assert rows[0].link_us == 1e6 * 4 * 64 * 4 / device.host_bytes_per_second
    assert "to the NeuronCore" in shown(loaded)


def test_between_parts_and_as_32_bits() -> None:
    """What the core computes goes to the CPU's CumSum and back; int64 positions travel as int32."""
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], "before"),
        helper.make_node("ArgMax", ["r"], ["best"], "positions", axis=1),
        helper.make_node("CumSum", ["r", "axis"], ["c"], "between"),
        helper.make_node("Sigmoid", ["c"], ["y"], "after"),
    ]
    model = make_model(nodes, {"x": [8, 32]}, ["y", "best"], {"axis": np.int64(1)}, opset=18)
    mod, params = relay.frontend.from_onnx(model)
    options = tvm_neuron.BuildOptions(on_cpu=("between",), minimum_segment_size=1)
    built = relay.build(mod, target="neuron", params=params, options=options)
    executor = built["default"](tvm.cpu())
    executor.run(x=np.random.default_rng(4).standard_normal((8, 32), dtype=np.float32))
    assert executor.get_output(1).dtype == "int64"
    rows, moved = tvm_neuron.report(built).transfers, executor.moved
    assert moved.calls == len({row.subgraph for row in rows}) == 2
    to_core = [row.bytes for row in rows if row.direction == "to the NeuronCore"]
    from_core = [row.bytes for row in rows if row.direction == "from the NeuronCore"]
    assert to_core == [8 * 32 * 4] * 2  # x and c
    assert sorted(from_core) == [8 * 4, 8 * 32 * 4, 8 * 32 * 4]  # best, r and y
    assert (moved.tensors_to_core, moved.bytes_to_core) == (2, sum(to_core))
    assert (moved.tensors_from_core, moved.bytes_from_core) == (3, sum(from_core))
