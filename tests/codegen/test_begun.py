"""Tiles of what kernels before them began: rows that only those made, which later tiles read."""

from itertools import count

import numpy as np
import pytest

from tests.codegen import interpreter
from tvm_neuron.codegen.tiles.copies import Place, copy_of
from tvm_neuron.codegen.tiles.group import group_of
from tvm_neuron.codegen.tiles.unroll import unroll
from tvm_neuron.program import Origin
from tvm_neuron.schedule.graph import Graph
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.tensor import Tensor

numbers = count()


def copied(source: Place, target: Place, rows: int) -> Kernel:
    """Of four channels."""
    return copy_of(Origin(f"copy{next(numbers)}", "Copy"), (4, rows, 3), 0, source, target, by_dma=False)


def test_rows_of_which_the_group_makes_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last rows of some channels are copies of the first ones of others: the first tiles make nothing."""
    x, t = Tensor("x", (4, 8, 3), "float32", "input"), Tensor("t", (8, 8, 3), "float32")
    y = Tensor("y", (4, 12, 3), "float32", "output")
    before = [copied((x, (0, 0, 0)), (t, (0, 0, 0)), 8)]
    shifted = copied((t, (0, 0, 0)), (t, (4, 4, 0)), 4)
    after = [copied((t, (0, 0, 0)), (y, (0, 0, 0)), 8), copied((t, (4, 4, 0)), (y, (0, 8, 0)), 4)]
    partition_of, graph = dict.fromkeys((x, t, y), 0), Graph([x], [y], [])
    group = group_of((shifted,), 1, before, {t}, {t}, partition_of, dict.fromkeys((x, t, y), "float32"))
    assert group is not None
    made = unroll(group, 8, frozenset({t}))
    assert made is not None
    inputs = {"x": np.random.default_rng(0).standard_normal(x.shape)}
    monkeypatch.setattr(interpreter, "_check_whole", lambda _written: None)  # some rows of some channels are not used
    places = partition_of | made.partition_of
    found = interpreter.run_kernels([*before, *made.kernels, *after], places, graph, inputs)[y]
    np.testing.assert_array_equal(found, np.concatenate([inputs["x"], inputs["x"][:, :4]], axis=1))
