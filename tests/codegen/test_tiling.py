"""tiling: tiles and runs cover everything once, runs start where an access may, and patterns are joined together."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tvm_neuron.codegen.emit.squeeze import Squeeze
from tvm_neuron.isa import Affine, Tile
from tvm_neuron.isa.limits import partition_start_step
from tvm_neuron.schedule.expr import Axis
from tvm_neuron.schedule.tiling import contiguous, runs, segments, tile_sizes


@given(st.integers(0, 50), st.integers(1, 2000), st.integers(1, 600))
def test_segments_cover_once_in_order(low: int, extent: int, most: int) -> None:
    found = segments(low, low + extent, most)
    assert [i for start, size, count in found for i in range(start, start + size * count)] == list(
        range(low, low + extent)
    )
    assert all(size <= most for _, size, _ in found)
    assert sum(count for *_, count in found) == -(-extent // most)  # no more tiles than needed


FIRSTS = st.lists(st.integers(0, 11).map(lambda i: 32 * i), min_size=1, max_size=3)


@given(st.integers(1, 700), FIRSTS, st.sampled_from([64, 128]))
def test_runs_cover_once_and_start_where_they_may(extent: int, firsts: list[int], most: int) -> None:
    covered = []
    for start, size, count in runs(extent, firsts, most):
        for i in range(count):
            at = start + 128 * i
            covered += range(at, at + size)
            assert size <= most
            for first in firsts:
                partition = (first + at) % 128
                assert partition + size <= 128
                assert partition % partition_start_step(size) == 0
    assert sorted(covered) == list(range(extent))


@given(st.integers(1, 700), st.integers(0, 300))
def test_a_dma_may_start_anywhere(extent: int, first: int) -> None:
    listed = runs(extent, [first], any_start=True)
    found = [(start + 128 * i, size) for start, size, count in listed for i in range(count)]
    assert sorted(c for at, size in found for c in range(at, at + size)) == list(range(extent))
    assert all((first + at) % 128 + size <= 128 for at, size in found)


def test_a_start_that_no_engine_has_is_refused_at_once() -> None:
    with pytest.raises(AssertionError, match="start at partition 9"):
        runs(64, [9])


@given(st.lists(st.integers(1, 40), min_size=1, max_size=4), st.integers(1, 600))
def test_tiles_are_the_innermost_axes_whole(extents: list[int], most: int) -> None:
    axes = [Axis(f"a{i}", extent) for i, extent in enumerate(extents)]
    sizes = tile_sizes(axes, {axis: (0, axis.extent) for axis in axes}, most)
    assert 1 <= np.prod(list(sizes.values())) <= most
    partial = [axis for axis in axes if sizes[axis] < axis.extent]
    for axis in partial[:-1]:
        assert sizes[axis] == 1  # only one axis is cut in the middle: the last one that does not fit


def addresses(dims: tuple[tuple[int, int], ...]) -> list[int]:
    points = product(*(range(count) for _, count in dims))
    return [sum(step * i for (step, _), i in zip(dims, at, strict=True)) for at in points]


@given(st.lists(st.tuples(st.integers(1, 3), st.booleans()), min_size=1, max_size=4), st.integers(0, 3))
def test_squeezed_patterns_visit_the_same_addresses_in_step(dims: list[tuple[int, bool]], gap: int) -> None:
    """One pattern without gaps and one with a gap after some dimensions, in the shape that suits both."""
    counts = [count for count, _ in dims]
    plain = contiguous(counts)
    step, gapped = 1, []
    for count, has_gap in reversed(dims):
        gapped.append((step, count))
        step = step * count + (gap if has_gap else 0)
    tiles = [Tile("sbuf", "float32", Affine(), 4, Affine(), d) for d in (plain, tuple(reversed(gapped)))]
    shape_of = Squeeze(tiles)
    squeezed = [shape_of(tile) for tile in tiles]
    assert [count for _, count in squeezed[0].dims] == [count for _, count in squeezed[1].dims]
    for before, after in zip(tiles, squeezed, strict=True):
        assert addresses(before.dims) == addresses(after.dims)
    if not gap:
        assert len(squeezed[0].dims) == 1
