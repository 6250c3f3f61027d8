"""dense_weights: whatever the grouping, weights[k, steps, m] is what the block multiplies partition k with for m."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tvm_neuron.schedule.dense import dense_weights, without_zeros
from tvm_neuron.schedule.expr import Axis, Expr, Index, Load
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor

RNG = np.random.default_rng(0)
STEPS = (Axis("ky", 3, True), Axis("kx", 2, True))


def load(*shape_axes: Axis) -> Load:
    value = RNG.standard_normal([axis.extent for axis in shape_axes]).astype(np.float32)
    index: tuple[Expr, ...] = tuple(Index(axis) for axis in shape_axes)
    return Load(Tensor("w", value.shape, "float32", value=value), index)


def by_hand(weight: Load, depth: Linear, rows: Linear, channels: int) -> np.ndarray:
    """[channels of the data, *steps, outputs]: every product added where it belongs."""
    axes = list(dict.fromkeys([*rows.terms, *depth.terms]))
    dense = np.zeros((channels, *(axis.extent for axis in STEPS), rows.span[1] - rows.span[0] + 1))
    for point in itertools.product(*(range(axis.extent) for axis in [*axes, *STEPS])):
        values = dict(zip([*axes, *STEPS], point, strict=True))
        k = depth.const + sum(step * values[axis] for axis, step in depth.terms.items())
        m = rows.const + sum(step * values[axis] for axis, step in rows.terms.items()) - rows.span[0]
        if 0 <= k < channels:
            index = tuple(values[part.axis] for part in weight.indices)  # type: ignore[union-attr]
            dense[(k, *(values[axis] for axis in STEPS), m)] += weight.tensor.value[index]  # type: ignore[index]
    return dense


def check(weight: Load, depth: Linear, rows: Linear, channels: int) -> None:
    found = dense_weights([weight], depth, rows, STEPS, channels)
    assert found is not None
    assert found.first % 32 == 0
    wanted = by_hand(weight, depth, rows, channels)
    whole = np.zeros((max(channels, found.first + len(found.weights)), *wanted.shape[1:]))
    whole[found.first : found.first + len(found.weights)] = found.weights
    np.testing.assert_allclose(whole[:channels], wanted, rtol=1e-6)
    assert not whole[channels:].any()


def test_plain() -> None:
    m, k = Axis("m", 5), Axis("k", 7, True)
    check(load(m, k, *STEPS), Linear(0, {k: 1}), Linear(0, {m: 1}), 7)


@pytest.mark.parametrize("first", [0, 32, 9, 40])
def test_a_part_of_the_channels(first: int) -> None:
    m, k = Axis("m", 5), Axis("k", 7, True)
    check(load(m, k, *STEPS), Linear(first, {k: 1}), Linear(0, {m: 1}), 60)


@pytest.mark.parametrize("offset", [0, 16])
def test_groups_are_a_block_diagonal(offset: int) -> None:
    group, inner, k = Axis("g", 4), Axis("o", 3), Axis("k", 2, True)
    check(load(group, inner, k, *STEPS), Linear(0, {group: 2, k: 1}), Linear(offset, {group: 3, inner: 1}), 8)


def test_depthwise() -> None:
    channel = Axis("c", 6)
    check(load(channel, *STEPS), Linear(0, {channel: 1}), Linear(0, {channel: 1}), 6)


def test_permuted_channels() -> None:
    m, low, high = Axis("m", 4), Axis("kl", 3, True), Axis("kh", 5, True)
    check(load(m, low, high, *STEPS), Linear(0, {low: 1, high: 3}), Linear(0, {m: 1}), 15)


def test_a_window_over_channels_reads_no_padding() -> None:
    channel, window = Axis("c", 9), Axis("w", 5, True)
    check(load(channel, window, *STEPS), Linear(-2, {channel: 1, window: 1}), Linear(0, {channel: 1}), 9)


def test_weights_that_change_along_a_free_axis_are_none() -> None:
    m, k, free = Axis("m", 5), Axis("k", 7, True), Axis("x", 3)
    assert dense_weights([load(m, k, free, *STEPS)], Linear(0, {k: 1}), Linear(0, {m: 1}), STEPS, 7) is None


@given(
    st.lists(st.booleans(), min_size=2, max_size=9), st.lists(st.booleans(), min_size=2, max_size=5),
    st.integers(1, 3), st.integers(1, 3),
)  # fmt: skip
def test_steps_of_zeros_are_left_out(rows: list[bool], columns: list[bool], down: int, across: int) -> None:
    """What is left reads the same elements for the same weights; a spread window has as many steps as taps."""
    used = np.outer(rows, columns)
    weights = RNG.standard_normal((2, *used.shape, 3)) * used[None, :, :, None]
    steps = Axis("ky", len(rows), True), Axis("kx", len(columns), True)
    maps = Linear(5, {steps[0]: down}), Linear(7, {steps[1]: across})
    left, kept, found = without_zeros(maps, steps, weights)
    assert found.shape == (2, *(axis.extent for axis in kept), 3)
    assert [axis.extent for axis in kept].count(1) == 0
    image = RNG.standard_normal((2, 5 + 9 * down, 7 + 5 * across))

    def summed(maps: tuple[Linear, ...], steps: tuple[Axis, ...], weights: np.ndarray) -> np.ndarray:
        total = np.zeros(3)
        for point in itertools.product(*(range(axis.extent) for axis in steps)):
            at = dict(zip(steps, point, strict=True))
            row, column = (part.const + sum(step * at[axis] for axis, step in part.terms.items()) for part in maps)
            total += image[:, row, column] @ weights[(slice(None), *point)]
        return total

    np.testing.assert_allclose(summed(left, kept, found), summed(maps, steps, weights), atol=1e-12)


def test_a_spread_window_has_as_many_steps_as_taps() -> None:
    step = Axis("k", 37, True)
    weights = np.zeros((1, 37, 1))
    weights[:, ::12] = 1
    maps, (left,), found = without_zeros((Linear(3, {step: 2}),), (step,), weights)
    assert (left.extent, maps[0], found.shape) == (4, Linear(3, {left: 24}), (1, 4, 1))
