"""sparse_dense agrees with SciPy's idea of CSR and BSR, spelled out in NumPy, on either side."""

from collections import namedtuple
from typing import Any

import numpy as np
import pytest
import tvm

from tvm_neuron import relay
from tvm_neuron.errors import ModelError

Sparse = namedtuple("Sparse", ["data", "indices", "indptr"])
RNG = np.random.default_rng(2)


def _random(rows: int, columns: int, block: tuple[int, int]) -> tuple[np.ndarray, Sparse]:
    """A matrix with zeros and without them, row by row; at least one block, and one row of blocks without any."""
    height, width = block
    dense = np.zeros((rows * height, columns * width), "float32")
    data, indices, indptr = [], [], [0]
    for row in range(rows):
        for column in np.flatnonzero(RNG.random(columns) < 0.4) if row != 1 else []:
            data.append(RNG.standard_normal(block).astype("float32"))
            dense[row * height : (row + 1) * height, column * width : (column + 1) * width] = data[-1]
            indices.append(column)
        indptr.append(len(indices))
    values = np.array(data, "float32")
    places = (np.array(each, "int32") for each in (indices, indptr))
    return dense, Sparse(values.reshape(-1) if block == (1, 1) else values, *places)


@pytest.mark.parametrize("block", [(1, 1), (2, 4), (16, 1)])
@pytest.mark.parametrize("is_left", [False, True])
def test_it_agrees_with_the_matrix_with_its_zeros(block: tuple[int, int], is_left: bool) -> None:
    dense, sparse = _random(6, 10, block)
    x = RNG.standard_normal((3, dense.shape[1])).astype("float32")
    consts = Sparse(*map(relay.const, sparse))
    made = relay.nn.sparse_dense(relay.var("x", shape=x.shape), consts, sparse_lhs=is_left)
    found = relay.create_executor("graph", tvm.IRModule.from_expr(made), target="neuron/inf2").evaluate()(x).numpy()
    expected = dense @ x.T if is_left else x @ dense.T
    sizes = abs(dense) @ abs(x).T if is_left else abs(x) @ abs(dense).T
    assert found.shape == expected.shape
    assert (abs(found - expected) <= 2.0**-7 * sizes).all()  # of bfloat16's 2**-9 for each factor, and its sum


@pytest.mark.parametrize(
    ("sparse", "message"),
    [
        (Sparse(relay.var("d", shape=(2,)), relay.const([0, 1]), relay.const([0, 2])), "needs it as constants"),
        (Sparse(*map(relay.const, ([1.0, 2.0], [0, 9], [0, 2]))), "they don't fit together"),
        (Sparse(*map(relay.const, ([1.0, 2.0], [0, 1], [0, 1]))), "they don't fit together"),
    ],
)
def test_what_is_refused(sparse: Any, message: str) -> None:
    made = relay.nn.sparse_dense(relay.var("x", shape=(3, 4)), sparse)
    with pytest.raises(ModelError, match=message):
        relay.transform.InferType()(tvm.IRModule.from_expr(made))
