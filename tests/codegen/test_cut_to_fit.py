"""Kernels whose smallest strips exceed a partition: rows longer than it, more channels than it has chunks for."""

from pathlib import Path

import numpy as np
import onnx
import pytest
import tvm
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from onnx import helper

from tests.onnx_models import Arrays, make_model, reference
from tests.stages.networks import run
from tests.stages.test_small_memory import shrunk
from tvm_neuron import neff, relay, runtime
from tvm_neuron.build import BuildOptions
from tvm_neuron.codegen.emit.positions import positions_bytes
from tvm_neuron.codegen.kernels.cut_to_fit import _with_fewer_constants
from tvm_neuron.schedule.expr import Apply, Axis, Index, Load
from tvm_neuron.schedule.kernel import ROOT, Kernel, Operand, Transposition
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor

KIB = 28  # of each partition
CASTS = {"inf1": "all", "inf2": "none"}
BOUNDS = {"inf1": 2.0**-6, "inf2": 2.0**-18}  # exponentials of up to 8, rounded to bfloat16 or float32 before
LENGTHS = st.one_of(st.integers(1, 200), st.integers(1500, 8000))
KINDS = ("Softmax", "ReduceMax", "ReduceMin", "ReduceSum", "ReduceMean", "ReduceL2", "LayerNormalization")


def reduced(kind: str, shape: tuple[int, int], axis: int) -> onnx.ModelProto:
    """Arithmetic, the operator along an axis, and arithmetic with a value for each row and one for each column."""
    rng = np.random.default_rng(0)
    weights = {"r": rng.random((shape[0], 1), np.float32) + 1, "c": rng.random((1, shape[1]), np.float32) + 1}
    nodes = [helper.make_node("Mul", ["x", "r"], ["a"])]
    if kind == "Softmax":
        nodes.append(helper.make_node(kind, ["a"], ["b"], axis=axis))
    elif kind == "LayerNormalization":
        weights["s"] = rng.random(shape[1], np.float32)
        nodes.append(helper.make_node(kind, ["a", "s"], ["b"], axis=-1))
    else:
        weights["axes"] = np.int64([axis])
        nodes.append(helper.make_node(kind, ["a", "axes"], ["b"]))
    nodes.append(helper.make_node("Mul", ["b", "c"], ["y"]))
    return make_model(nodes, {"x": shape}, ["y"], weights)


def outputs(model: onnx.ModelProto, inputs: Arrays, folder: Path, chip: str) -> np.ndarray:
    """Output "y" of a chip of little memory, all of the model on it."""
    mod, params = relay.frontend.from_onnx(model)
    options = BuildOptions(fp32_cast=CASTS[chip], must_compile=True)
    library = relay.build(mod, target=tvm.target.Target(shrunk(folder, chip, KIB)), params=params, options=options)
    (data,) = runtime.neffs(library).values()
    return run(neff.read(data), inputs, "strict")["y"]


@pytest.mark.slow
@settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example("Softmax", 1, 1500, 0, "inf1")  # has the largest temporaries
@given(st.sampled_from(KINDS), LENGTHS, LENGTHS, st.sampled_from((0, 1)), st.sampled_from(("inf1", "inf2")))
@example("Softmax", 3, 10007, 1, "inf1")  # a prime
@example("Softmax", 4500, 60, 1, "inf2")
@example("ReduceMax", 4501, 40, 0, "inf1")
@example("LayerNormalization", 130, 2500, 1, "inf2")
def test_as_onnxruntime(tmp_path: Path, kind: str, rows: int, columns: int, axis: int, chip: str) -> None:
    rows = min(rows, 400_000 // columns)
    model = reduced(kind, (rows, columns), axis)
    x = np.random.default_rng(rows).standard_normal((rows, columns), np.float32)
    (wanted,) = reference(model, {"x": x})
    assert np.linalg.norm(outputs(model, {"x": x}, tmp_path, chip) - wanted) <= BOUNDS[chip] * np.linalg.norm(wanted)


@pytest.mark.slow
@pytest.mark.parametrize(("queries", "keys", "chip"), [(4096, 64, "inf1"), (20, 3000, "inf2")])
def test_attention_of_many_tokens(queries: int, keys: int, chip: str, tmp_path: Path) -> None:
    nodes = [
        helper.make_node("MatMul", ["q", "k"], ["s"]),
        helper.make_node("Softmax", ["s"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "v"], ["y"]),
    ]
    rng = np.random.default_rng(0)
    shapes = {"q": (1, 2, queries, 16), "k": (1, 2, 16, keys), "v": (1, 2, keys, 16)}
    inputs = {name: 0.5 * rng.standard_normal(shape, np.float32) for name, shape in shapes.items()}
    model = make_model(nodes, shapes, ["y"])
    (wanted,) = reference(model, inputs)
    assert np.linalg.norm(outputs(model, inputs, tmp_path, chip) - wanted) <= BOUNDS[chip] * np.linalg.norm(wanted)


def test_parts_of_transposed_rows_begin_where_engines_may() -> None:
    """With more bytes of constants than a kernel may have: the rows lie on the partitions of what is transposed."""
    row, one, size = Axis("c", 1536), Axis("one", 1), 1536
    source = Operand(Tensor("x", (size, 1), "float32"), (Linear(0, {row: 1}), Linear()))
    scale = Tensor("s", (size,), "float32", value=np.ones(size, np.float32))
    scaled = Apply("multiply", (ROOT, Load(scale, (Index(row),))))
    maps = Linear(), Linear(0, {row: 1})
    kernel = Kernel((), Tensor("y", (1, size), "float32"), maps, one, (row,), scaled, Transposition(source, row))
    parts = list(_with_fewer_constants(kernel, positions_bytes(kernel) * 8 // 9))
    firsts = [part.root.source.maps[0].const for part in parts if isinstance(part.root, Transposition)]
    assert firsts == [0, 1280]
    assert [part.free[0].extent for part in parts] == [1280, 256]
