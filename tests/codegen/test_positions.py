"""Constants along free axes: spread to the bit, kept apart from weights, moved if they are large."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from onnx import helper

from tests.codegen.test_products import normal, run_on_core
from tests.models.agreement import Case
from tests.models.zoo.encoders import TYPES, VOCABULARY, bert
from tvm_neuron.codegen.emit.positions import split_float32


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
