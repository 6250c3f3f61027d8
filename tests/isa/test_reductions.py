"""Instructions that also reduce what they compute, and the scan: their meaning in float64."""

from dataclasses import replace

import numpy as np
import pytest

from tests.isa.examples import psum, sbuf
from tvm_neuron.errors import ProgramError
from tvm_neuron.hw import load_device
from tvm_neuron.isa import (
    ActivationReduce,
    BnAggr,
    BnStats,
    TensorReduce,
    TensorScalarReduce,
    TensorTensorScan,
    Tile,
)

TOLERANCE = 1e-5  # of float32 sums and products of some hundred numbers near 1


def column(partitions: int) -> Tile:
    return sbuf(partitions, 1, dtype="float32", at=8192)


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(3).standard_normal(shape).astype(np.float32)


def test_activation_reduce_sums_what_it_writes() -> None:
    made = ActivationReduce(sbuf(7, 3, 40), column(7), psum(7, 3, 40), 0.5, column(7), "exp")
    x, scale, bias = normal(7, 3, 40), np.float32(0.5), normal(7, 1, 1)
    wanted = np.exp(x.astype(np.float64) * 0.5 + bias)
    np.testing.assert_allclose(made.compute_for("result", x, scale, bias), wanted, TOLERANCE)
    np.testing.assert_allclose(made.compute_for("total", x, scale, bias), wanted.sum((1, 2))[:, None], TOLERANCE)


@pytest.mark.parametrize(("op", "reduce"), [("add", np.sum), ("max", np.max), ("min", np.min)])
def test_tensor_scalar_reduce_reduces_what_it_writes(op: str, reduce: np.ufunc) -> None:
    made = TensorScalarReduce(sbuf(7, 40), column(7), psum(7, 40), 2.0, "subtract", op, 1)
    x = normal(7, 40)
    wanted = 2.0 - x.astype(np.float64)
    np.testing.assert_allclose(made.compute_for("result", x, np.float32(2)), wanted, TOLERANCE, TOLERANCE)
    found = made.compute_for("total", x, np.float32(2))
    np.testing.assert_allclose(found, reduce(wanted, axis=1)[:, None], TOLERANCE)


@pytest.mark.parametrize("reverse", range(4))
def test_a_scan_takes_its_operands_either_way_round(reverse: int) -> None:
    made = TensorTensorScan(sbuf(5, 4, 9), sbuf(5, 4, 9), psum(5, 4, 9), column(5), "subtract", "subtract", reverse)
    left, right, state = normal(5, 4, 9), normal(5, 4, 9)[::-1], normal(5, 1, 1)
    found = made.compute(left, right, state)
    wanted, now = np.empty((5, 36)), state.astype(np.float64).reshape(5)
    for at in range(36):
        one, two = left.reshape(5, 36)[:, at], right.reshape(5, 36)[:, at]
        inner = now - one if reverse & 1 else one - now
        now = wanted[:, at] = two - inner if reverse & 2 else inner - two
    np.testing.assert_allclose(found.reshape(5, 36), wanted, TOLERANCE, TOLERANCE * 10)


def test_what_is_reduced_is_a_column() -> None:
    made = ActivationReduce(sbuf(7, 40), sbuf(7, 2), sbuf(7, 40), 1.0, 0.0, "exp")
    with pytest.raises(ProgramError, match=r"activation_reduce: reduces to \[7, 2\]; it must be \[7, 1\]"):
        made.check(load_device("trn1"))


def test_a_scan_reads_psum_once() -> None:
    made = TensorTensorScan(sbuf(7, 4), psum(7, 4), psum(7, 4), 0.0, "multiply", "add", 0)
    with pytest.raises(ProgramError, match="tensor_tensor_scan: both sources lie in PSUM"):
        made.check(load_device("trn1"))


@pytest.mark.parametrize("sizes", [(40,), (512, 512, 77), (1, 2)])
def test_statistics_of_parts_are_those_of_the_whole(sizes: tuple[int, ...]) -> None:
    parts = [normal(5, size) * 3 + 7 for size in sizes]
    told = [BnStats(sbuf(5, 6, dtype="float32"), sbuf(5, part.shape[1])).compute(part) for part in parts]
    for stats, part in zip(told, parts, strict=True):
        even = part[:, ::2].astype(np.float64)
        np.testing.assert_allclose(stats[:, 0], even.shape[1])
        np.testing.assert_allclose(stats[:, 1], even.mean(1), TOLERANCE)
        np.testing.assert_allclose(stats[:, 2], even.var(1) * even.shape[1], 10 * TOLERANCE, TOLERANCE)
    found = BnAggr(sbuf(5, 2, dtype="float32"), sbuf(5, 6 * len(sizes), dtype="float32")).compute(np.hstack(told))
    whole = np.hstack(parts).astype(np.float64)
    np.testing.assert_allclose(found, np.stack([whole.mean(1), whole.var(1)], 1), 10 * TOLERANCE)


@pytest.mark.parametrize("elems", [513, 600])
def test_statistics_have_a_limit(elems: int) -> None:
    with pytest.raises(ProgramError, match=rf"bn_stats: from \[4, {elems}\] .* at most 512 elements"):
        BnStats(sbuf(4, 6, dtype="float32"), sbuf(4, elems)).check(load_device("trn1"))


def test_statistics_come_in_threes() -> None:
    with pytest.raises(ProgramError, match=r"bn_aggr: from \[4, 7\] to \[4, 2\]; it takes threes of numbers"):
        BnAggr(sbuf(4, 2, dtype="float32"), sbuf(4, 7, dtype="float32")).check(load_device("trn1"))


@pytest.mark.parametrize(("op", "reduce"), [("add", np.sum), ("max", np.max), ("min", np.min), ("multiply", np.prod)])
@pytest.mark.parametrize("shape", [(7, 3, 40), (7, 3, 5)])
def test_tensor_reduce_with_the_other_sign(op: str, reduce: np.ufunc, shape: tuple[int, ...]) -> None:
    x = normal(*shape)
    made = TensorReduce(sbuf(7, 3, dtype="float32"), sbuf(*shape), f"negated_{op}", 1)
    np.testing.assert_allclose(made.compute(x), -reduce(x.astype(np.float64), axis=-1), TOLERANCE, TOLERANCE)
    device = load_device("inf2")
    assert made.cost(device) == replace(made, op=op).cost(device)
