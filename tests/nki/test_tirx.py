"""What TVM's target `trn` prints for its families of tile primitives runs on the model, and gives what NumPy does."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import tvm

from tests.nki import tirx_kernels
from tests.nki.test_kernels import FLOAT32, check
from tests.nki.tirx_kernels import SHAPE, T, Tx, elementwise, reducing
from tvm_neuron.errors import KernelError
from tvm_neuron.nki import from_tirx

Array = np.ndarray
X = np.random.default_rng(0).uniform(0.5, 2, SHAPE).astype(np.float32)
LOWER = np.arange(SHAPE[0])[:, None] < np.arange(SHAPE[1])
TWO, HALF = T.float32(2.0), T.float32(0.5)

# Functions that make the kernels: to parse one takes TVM half a second, which collecting the tests does without.
CASES: dict[str, tuple[Callable[[], Any], Callable[[Array], Array]]] = {
    "copy": (partial(elementwise, lambda b, a: Tx.copy(b, a)), lambda x: x),
    "unary": (partial(elementwise, lambda b, a: Tx.reciprocal(b, a)), lambda x: 1 / x),
    "memset": (partial(elementwise, lambda b, a: Tx.memset(b, HALF)), lambda x: np.full(SHAPE, 0.5)),
    "unary by Scalar": (partial(elementwise, lambda b, a: Tx.sqrt(b, a)), np.sqrt),
    "unary with bias and scale": (
        partial(elementwise, lambda b, a: Tx.exp(b, a, bias=HALF, scale=TWO)), lambda x: np.exp(2 * x + 0.5)),
    "binary": (partial(elementwise, lambda b, a: Tx.add(b, a, a)), lambda x: 2 * x),
    "binary with a number": (partial(elementwise, lambda b, a: Tx.add(b, a, HALF)), lambda x: x + 0.5),
    "select": (
        partial(elementwise, lambda b, a: Tx.select(b, a, 0.0, lambda i, j: i < j)), lambda x: np.where(LOWER, x, 0)),
    "binary chain": (partial(elementwise, lambda b, a: Tx.binary_chain(b, a, TWO, a, "mul", "add")), lambda x: 3 * x),
    "sum": (partial(reducing, lambda b, c, a: Tx.sum(c, a, axes=[1])), lambda x: x.sum(1, keepdims=True)),
    "maximum": (partial(reducing, lambda b, c, a: Tx.max(c, a, axes=[1])), lambda x: x.max(1, keepdims=True)),
    "unary and reduction": (
        partial(reducing, lambda b, c, a: Tx.unary_reduce(b, c, a, "sqrt", "sum", reduce_axes=1)),
        lambda x: np.sqrt(x).sum(1, keepdims=True)),
    "binary and reduction": (
        partial(reducing, lambda b, c, a: Tx.binary_reduce(b, c, a, TWO, "mul", "max", reduce_axes=1)),
        lambda x: 2 * x.max(1, keepdims=True)),
    "negated reduction": (
        partial(reducing, lambda b, c, a: Tx.reduce_negate(c, a, "sum", 1)), lambda x: -x.sum(1, keepdims=True)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_family(name: str) -> None:
    made, reference = CASES[name]
    traced = from_tirx(made()).trace(X)
    check(traced.run("strict"), reference(X.astype(np.float64)), FLOAT32)
    assert traced.time().latency_us > 1


def test_gemm() -> None:
    a, b = (np.random.default_rng(seed).standard_normal((128, 128), dtype=np.float32) for seed in (1, 2))
    check(from_tirx(tirx_kernels.product)(a, b), a.astype(np.float64) @ b, FLOAT32)


def test_refusals() -> None:
    function = CASES["copy"][0]()
    with pytest.raises(KernelError, match=r"'kernel' does not say which of its buffers are inputs: T.func_attr"):
        from_tirx(function.without_attr("num_inputs"))

    with pytest.raises(KernelError, match=r"TVM can't lower 'on_no_core' for its target trn: .+"):
        from_tirx(tirx_kernels.on_no_core)
    assert tvm.target.Target.current(allow_none=True) is None
