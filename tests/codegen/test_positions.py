"""Constants along free axes: spread to the bit, kept apart from weights, moved if they are large."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from onnx import helper

from tests.codegen.detectors import inputs_of, scores
from tests.codegen.test_products import normal, run_on_core
from tests.models.agreement import Case
from tests.models.zoo.encoders import TYPES, VOCABULARY, bert
from tests.stages.networks import compile_model, run
from tests.stages.test_small_memory import shrunk
from tvm_neuron.codegen.emit.builder import Ring
from tvm_neuron.codegen.emit.positions import split_float32
from tvm_neuron.isa import DmaCopy, DramTile, Tile
from tvm_neuron.neff import Neff


@given(npst.arrays(np.float32, 5, elements=st.floats(-(2.0**127), 2.0**127, width=32, allow_subnormal=False)))
def test_three_parts_add_up(value: np.ndarray) -> None:
    parts = split_float32(value)
    assert np.all(parts.view(np.uint32) & 0xFFFF == 0)
    # what is below the smallest normal number is lost on the way, and nothing else
    np.testing.assert_allclose(parts.sum(axis=0, dtype=np.float64), value, rtol=0, atol=1.2e-38)


def test_infinities_stay() -> None:
    value = np.float32([np.inf, -np.inf, np.finfo(np.float32).max, np.finfo(np.float32).min])
    np.testing.assert_array_equal(split_float32(value).sum(axis=0), value)


def test_a_constant_along_rows_is_added_exactly() -> None:
    x, row = normal(1, 70, 600), normal(600) * 100
    actual = run_on_core([helper.make_node("Add", ["x", "row"], ["y"])], {"x": x}, {"row": row})
    np.testing.assert_array_equal(actual, x + row)


@pytest.mark.slow
def test_those_of_one_kernel_do_not_overwrite_each_other() -> None:
    """Scale and shift of BERT's last norm need all of their memory, of which the embeddings took a part before."""
    model = bert(1, 32, 768, 12, 1)
    random = np.random.default_rng(3)
    limits = {"ids": VOCABULARY, "types": TYPES, "mask": 2}
    inputs = {name: random.integers(0, limit, (1, 32)) for name, limit in limits.items()}
    found = Case(model, inputs).run("inf1")
    assert all(found.errors[name] <= found.bounds[name] for name in found.errors)


def test_weights_do_not_overwrite_it() -> None:
    """The weights of this product go around their memory more than once while the table is needed."""
    x, weights, table = normal(1, 40, 3072), normal(3072, 768) / 50, normal(40, 768) * 100
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Add", ["a", "t"], ["y"])]
    actual = run_on_core(nodes, {"x": x}, {"w": weights, "t": table})
    size = np.abs(x) @ np.abs(weights)
    assert np.all(np.abs(actual - (x.astype(np.float64) @ weights + table)) <= 2.0**-6.9 * size + 1e-4)


def test_large_ones_are_moved() -> None:
    x, table = normal(1, 8, 100, 100), normal(100, 100)
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Add", ["r", "t"], ["y"])]
    actual = run_on_core(nodes, {"x": x}, {"t": table})
    wanted = np.maximum(x, 0) + table
    np.testing.assert_allclose(actual, wanted, rtol=0, atol=2.0**-8 * np.abs(table).max())  # it is kept as bfloat16


def _copies(made: Neff) -> Iterator[DmaCopy]:
    return (node for _, node in made.program.instructions() if isinstance(node, DmaCopy))


def _named(made: Neff, side: Tile | DramTile, end: str) -> bool:
    return isinstance(side, DramTile) and made.program.tensors[side.tensor].name.endswith(end)


def test_a_table_comes_once_for_all_tiles(tmp_path: Path) -> None:
    model = scores((40, 64))
    made = compile_model(model, shrunk(tmp_path, "inf1", 40))
    assert sum(_named(made, copy.target, "y") for copy in _copies(made)) > 1  # in tiles
    assert sum(_named(made, copy.source, ".positions") for copy in _copies(made)) == 1
    case = Case(model, inputs_of(model))
    found = run(made, case.inputs, "strict")
    for name, exact in case.exact.items():
        np.testing.assert_allclose(found[name], exact, atol=0.02)  # bf16: numbers of up to 4, rounded


def test_what_lies_in_a_ring_is_known_until_its_bytes_are_handed_out_again() -> None:
    ring = Ring(0, 4096)
    ring.hold("table", ring.take(2048), 2048, "here")
    ring.take(2048)
    assert ring.find("table") == "here"
    ring.take(64)
    assert ring.find("table") is None
