"""Instructions that depend on where an element lies, or say where: their meaning, written out with loops."""

import numpy as np
import pytest

from tests.isa.examples import integers, sbuf
from tvm_neuron.errors import ProgramError
from tvm_neuron.hw import load_device
from tvm_neuron.isa import (
    AffineSelect,
    FindIndex8,
    Iota,
    LocalGather,
    MatchReplace8,
    Max8,
    PoolTranspose,
    RangeSelect,
    SelectReduce,
    StreamShuffle,
)

RANDOM = np.random.default_rng(5)


def normal(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def column(partitions: int):
    return sbuf(partitions, 1, dtype="float32", at=8192)


def test_iota_counts_partitions_and_free_axes_exactly() -> None:
    found = Iota(integers(7, 3, 4), (2**24, -5, 100, 1)).compute()
    wanted = [[[2**24 - 5 * p + 100 * i + j for j in range(4)] for i in range(3)] for p in range(7)]
    assert found.tolist() == wanted  # not as float32, which has no 2**24 + 1


@pytest.mark.parametrize(("test", "holds"), [("is_ge", lambda v: v >= 0), ("not_equal", lambda v: v != 0)])
def test_affine_select_masks_a_triangle(test: str, holds) -> None:
    x = normal(6, 5)
    found = AffineSelect(sbuf(6, 5), sbuf(6, 5), -7.0, (1, 1, -1), test).compute(x, np.float32(-7))
    wanted = [[x[p, i] if holds(1 + p - i) else -7 for i in range(5)] for p in range(6)]
    np.testing.assert_array_equal(found, np.array(wanted, np.float32))


def test_select_reduce_and_range_select_say_the_largest() -> None:
    x, predicate = normal(6, 9), RANDOM.integers(0, 2, (6, 9)).astype(np.float32)
    chosen = SelectReduce(sbuf(6, 9), column(6), sbuf(6, 9), sbuf(6, 9), -3.0)
    wanted = np.where(predicate == 1, x, np.float32(-3))
    np.testing.assert_array_equal(chosen.compute_for("result", predicate, x, np.float32(-3)), wanted)
    np.testing.assert_array_equal(chosen.compute_for("total", predicate, x, np.float32(-3))[:, 0], wanted.max(1))
    low, high = np.arange(6, dtype=np.float32)[:, None], np.full((6, 1), 12, np.float32)
    ranged = RangeSelect(sbuf(6, 9), column(6), sbuf(6, 9), column(6), column(6), 4.0, -3.0, "is_gt", "is_le")
    values = (x, low, high, np.float32(4), np.float32(-3))
    wanted = np.array([[x[p, i] if low[p] < 4 + i <= 12 else -3 for i in range(9)] for p in range(6)], np.float32)
    np.testing.assert_array_equal(ranged.compute_for("result", *values), wanted)
    np.testing.assert_array_equal(ranged.compute_for("total", *values)[:, 0], wanted.max(1))


def test_the_eight_largest_are_found_and_replaced() -> None:
    x = RANDOM.integers(0, 6, (5, 40)).astype(np.float32)  # many are equal
    top = Max8(sbuf(5, 8), sbuf(5, 40)).compute(x)
    assert top.tolist() == [sorted(row, reverse=True)[:8] for row in x.tolist()]
    values = top.copy()
    values[:, 3] = 99  # is nowhere
    places = FindIndex8(integers(5, 8), sbuf(5, 40), sbuf(5, 8)).compute(x, values)
    assert places.tolist() == [
        [row.index(v) if v in row else -1 for v in mine] for row, mine in zip(x.tolist(), values.tolist(), strict=True)
    ]
    made = MatchReplace8(sbuf(5, 40), integers(5, 8), sbuf(5, 40), sbuf(5, 8), -1.0)
    rows, found = x.tolist(), []
    for row, mine in zip(rows, values.tolist(), strict=True):
        where = [-1] * 8
        for slot in range(7, -1, -1):
            if mine[slot] in row:
                where[slot] = row.index(mine[slot])
                row[where[slot]] = -1.0
        found.append(where)
    assert made.compute_for("result", x, values, np.float32(-1)).tolist() == rows
    assert made.compute_for("indices", x, values, np.float32(-1)).tolist() == found


@pytest.mark.parametrize("elems", [1, 3])
def test_local_gather_has_a_list_of_indices_for_each_16_partitions(elems: int) -> None:
    x, indices = normal(32, 12), RANDOM.integers(0, 12 // elems, (32, 2)).astype(np.int32)
    found = LocalGather(sbuf(32, 20, elems), sbuf(32, 12), integers(32, 2), elems).compute(x, indices)
    for p in range(32):
        listed = indices[p // 16 * 16 : p // 16 * 16 + 16].T.reshape(-1)
        wanted = np.concatenate([x[p, at * elems : (at + 1) * elems] for at in listed[:20]])
        np.testing.assert_array_equal(found[p].reshape(-1), wanted)


def test_local_gather_refuses_what_lies_outside() -> None:
    made = LocalGather(sbuf(16, 16), sbuf(16, 4), integers(16, 1), 1)
    with pytest.raises(ProgramError, match="index 4 lies outside of the 4 groups of 1"):
        made.compute(normal(16, 4), np.full((16, 1), 4, np.int32))


def test_a_shuffle_moves_within_32_partitions() -> None:
    mask = tuple(RANDOM.permutation(32).tolist())
    made = StreamShuffle(integers(64, 3), integers(64, 3), mask)
    made.check(load_device("trn1"))
    x = RANDOM.integers(-(2**31), 2**31, (64, 3)).astype(np.int32)
    assert made.compute(x).tolist() == [x[p // 32 * 32 + mask[p % 32]].tolist() for p in range(64)]
    row = StreamShuffle(integers(20, 3), integers(1, 3), (0,) * 32)
    row.check(load_device("trn1"))
    np.testing.assert_array_equal(row.compute(x[:1]), np.repeat(x[:1], 20, 0))
    with pytest.raises(ProgramError, match=r"stream_shuffle: operands have shapes"):
        StreamShuffle(integers(64, 3), integers(1, 3), (0,) * 32).check(load_device("trn1"))
    with pytest.raises(ProgramError, match=r"it takes 32 numbers, each of a partition from 0 to 7 of its group"):
        StreamShuffle(sbuf(8, 3), sbuf(8, 3), mask).check(load_device("trn1"))


def test_vector_transposes_up_to_32_by_32() -> None:
    device = load_device("trn1")
    made = PoolTranspose(integers(5, 32), integers(32, 5))
    made.check(device)
    x = RANDOM.integers(-(2**31), 2**31, (3, 32, 5)).astype(np.int32)  # in three iterations of a loop
    np.testing.assert_array_equal(made.compute(x), x.transpose(0, 2, 1))
    for wrong in (PoolTranspose(sbuf(33, 5), sbuf(5, 33)), PoolTranspose(sbuf(5, 8), sbuf(9, 5))):
        with pytest.raises(ProgramError, match=r"pool_transpose: .*; it takes \[P, F\] to \[F, P\], both at most 32"):
            wrong.check(device)
    with pytest.raises(ProgramError, match=r"pool_transpose: from bfloat16 to int32; it converts nothing"):
        PoolTranspose(integers(5, 8), sbuf(8, 5)).check(device)
