"""The array's arithmetic: a nest of matmuls at once gives the very bits of one matmul after the other."""

from itertools import product

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tvm_neuron.isa import contract as module
from tvm_neuron.isa.contract import contract


@st.composite
def cases(draw: st.DrawFn) -> tuple:
    loops = draw(st.lists(st.integers(1, 4), max_size=4))
    follows = [draw(st.sampled_from([(True, True), (True, False), (False, True), (False, False)])) for _ in loops]
    summed = tuple(axis for axis in range(len(loops)) if draw(st.booleans()) and any(follows[axis]))
    k, m = draw(st.sampled_from([1, 2, 3, 31, 64, 128])), draw(st.sampled_from([1, 2, 5, 16, 64, 128]))
    free = draw(st.sampled_from([(1,), (2,), (7,), (3, 5), (1, 16), (49,), (200,)]))
    random = np.random.default_rng(draw(st.integers(0, 99)))

    def values(lead: list[int], *shape: int) -> np.ndarray:
        return random.standard_normal((*lead, *shape)).astype(ml_dtypes.bfloat16)

    stationary = values([n if f[0] else 1 for n, f in zip(loops, follows, strict=True)], k, m)
    moving = values([n if f[1] else 1 for n, f in zip(loops, follows, strict=True)], k, *free)
    old = None
    if draw(st.booleans()):
        sizes = [1 if axis in summed else draw(st.sampled_from([1, n])) for axis, n in enumerate(loops)]
        old = values(sizes, m, *free).astype(np.float32)
    return loops, summed, stationary, moving, old


def one_by_one(
    loops: list, summed: tuple, stationary: np.ndarray, moving: np.ndarray, old: np.ndarray | None
) -> np.ndarray:
    """The loops as they stand, one matmul in each iteration."""
    m, free = stationary.shape[-1], moving.shape[len(loops) + 1 :]
    out = np.zeros([1 if axis in summed else n for axis, n in enumerate(loops)] + [m, *free], np.float32)
    started = set()
    for turn in product(*map(range, loops)):

        def at(array: np.ndarray, turn: tuple = turn) -> tuple:
            return tuple(i if n > 1 else 0 for i, n in zip(turn, array.shape, strict=False))

        part = contract(stationary[at(stationary)], moving[at(moving)], ())
        place = at(out)
        if place in started:
            out[place] += part
        else:
            out[place] = part if old is None else old[at(old)] + part
            started.add(place)
    return out


@pytest.mark.parametrize("group_bytes", [1, 3000, 8 << 20])
@given(case=cases())
@settings(max_examples=60, deadline=None)
def test_a_nest_gives_the_bits_of_its_matmuls(group_bytes: int, case: tuple) -> None:
    usual, module._GROUP_BYTES = module._GROUP_BYTES, group_bytes
    try:
        loops, summed, stationary, moving, old = case
        found = contract(stationary, moving, summed, old)
    finally:
        module._GROUP_BYTES = usual
    wanted = one_by_one(loops, summed, stationary, moving, old)
    assert np.broadcast_to(found, wanted.shape).tobytes() == wanted.tobytes()


def test_it_is_a_product() -> None:
    random = np.random.default_rng(0)
    a, b = random.standard_normal((128, 64)), random.standard_normal((128, 7, 9))
    wanted = np.einsum("km,kxy->mxy", a, b)
    assert np.allclose(contract(a.astype(np.float32), b.astype(np.float32), ()), wanted, atol=1e-4)
