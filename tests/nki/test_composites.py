"""Functions of the language that are several of its calls, and grids over cores, beside NumPy in float64."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np
import pytest

from tvm_neuron.errors import KernelError
from tvm_neuron.nki import jit as jit_of_beta2
from tvm_neuron.sim import time_program

RNG = np.random.default_rng(1)


@nki.jit
def on_rows(x, function, width):
    out = nl.ndarray((x.shape[0], width), dtype=nl.float32, buffer=nl.shared_hbm)
    nl.store(out, function(nl.load(x)))
    return out


def rows(x):
    return x.reshape(len(x), -1).astype(np.float64)


CASES = {
    "var": (lambda t: nl.var(t, axis=[1, 2], dtype=nl.float32), 1, lambda x: rows(x).var(1, keepdims=True)),
    "all": (lambda t: nl.all(t, axis=[1, 2], dtype=nl.float32), 1, lambda x: rows(x).all(1, keepdims=True)),
    "logical_not": (lambda t: nl.logical_not(t, dtype=nl.float32), 30, lambda x: rows(x) == 0),
}


@pytest.mark.parametrize("name", CASES)
def test_over_two_axes(name: str) -> None:
    x = RNG.integers(-3, 20, (70, 5, 6)).astype(np.float32)
    function, width, reference = CASES[name]
    np.testing.assert_allclose(on_rows(x.reshape(70, 5, 6), flat(function, width), width), reference(x), rtol=1e-5)


def flat(function, width):
    return lambda tile: function(tile).reshape((70, width))


def test_softmax() -> None:
    x = RNG.standard_normal((70, 90)).astype(np.float32) * 20
    powers = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    found = on_rows(x, lambda tile: nl.softmax(tile, axis=1), 90)
    np.testing.assert_allclose(found, powers / powers.sum(1, keepdims=True), atol=1e-6)


@nki.jit
def normed(x, w):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    weights = nl.load(w.reshape((1, x.shape[1])))
    nl.store(out, nl.rms_norm(nl.load(x), weights.broadcast_to(x.shape), axis=1, n=x.shape[1], epsilon=1e-5))
    return out


def test_rms_norm() -> None:
    x, w = (RNG.standard_normal(shape).astype(np.float32) for shape in ((70, 90), (90,)))
    wide = x.astype(np.float64)
    wanted = wide / np.sqrt(np.square(wide).mean(1, keepdims=True) + 1e-5) * w
    np.testing.assert_allclose(normed(x, w), wanted, rtol=1e-4, atol=1e-6)


@nki.jit
def doubled(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    programs.append(nl.program_id(0))
    part = nl.ds(nl.program_id(0) * 32, 32)
    nl.store(out[part], nl.load(x[part]) * 2.0)
    return out


programs: list[int] = []  # in the order in which they were traced


@pytest.mark.parametrize("size", [nl.spmd_dim(2, nl.nc(2)), nl.nc(4), 2 * nl.nc(2), 4])
def test_grids_over_cores(size: int) -> None:
    """As many instances as the product, traced once where no time is asked."""
    x = RNG.standard_normal((128, 40)).astype(np.float32)
    before = len(programs)
    assert np.array_equal(doubled.on("trn2")[size](x), 2 * x)
    assert programs[before:] == [0, 1, 2, 3]


@pytest.mark.parametrize("grid", [nl.nc(2), 4 * nl.nc(2), (2, nl.nc(2))])
def test_cores_share_the_dram(grid: int | tuple[int, ...]) -> None:
    """Two cores that add what they have take about half of the time, as long as their chip's DRAM serves both."""
    x = RNG.standard_normal((1024, 2048)).astype(np.float32)
    two = halves[grid].trace(x)
    alone = [time_program(program, two.device).total_ps for program in two.by_core]
    assert len(alone) == 2
    assert max(alone) <= two.latency_ps() < 0.7 * two.time().total_ps
    assert nl.spmd_dim(3, 4 * nl.nc(2)) == 24


@pytest.mark.parametrize("grid", [2, (2, 1), (1, 2)])
def test_launches_of_later_versions_name_cores(grid: int | tuple[int, ...]) -> None:
    """And those of Beta 1 instances, one after another."""
    x = RNG.standard_normal((1024, 2048)).astype(np.float32)
    one, two = halves[grid].trace(x), jit_of_beta2(halves.function)[grid].trace(x)
    assert one.latency_ps() == one.time().total_ps
    assert two.latency_ps() < 0.7 * two.time().total_ps
    assert np.array_equal(two.run(), 2 * x)


@pytest.mark.parametrize("grid", [4, (2, 2), nl.nc(4), (nl.nc(4), 2)])
def test_more_cores_than_a_chip_has(grid: int | tuple[int, ...]) -> None:
    x = np.zeros((128, 40), np.float32)
    with pytest.raises(KernelError, match=r"'doubled' is launched on 4 cores; a chip of trn1 has 2: launch it on so"):
        jit_of_beta2(doubled.function)[grid](x)


@nki.jit
def halves(x):
    """Blocks of 128 rows, in turn by each instance."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    first = 0
    for axis in range(nl.program_ndim()):
        first = first * nl.num_programs(axis) + nl.program_id(axis)
    for at in range(first, 8, nl.num_programs()):
        part = nl.ds(at * 128, 128)
        nl.store(out[part], nl.load(x[part]) * 2.0)
    return out


def test_sizes_of_grids() -> None:
    with pytest.raises(KernelError, match=r"spmd_dim of \[2, 0\]: give whole numbers from 1 on"):
        nl.spmd_dim(2, 0)


def test_no_condition_by_what_a_tile_holds() -> None:
    @nki.jit
    def branching(x):
        tile = nl.load(x)
        return tile if tile[0, 0] > 0 else x

    with pytest.raises(KernelError, match=r"a tile without axes: index by slices .*test_composites.py:\d+\)"):
        branching(np.ones((8, 8), np.float32))


@pytest.mark.parametrize("part", [lambda out: out[0:64], lambda out: out.permuted([1, 0]), lambda out: out[:, 0:64:2]])
def test_parts_are_not_returned(part) -> None:
    @nki.jit
    def kernel(x):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.load(x))
        return part(out)

    with pytest.raises(KernelError, match=r"a part of a tensor of 8192 elements or .*test_composites.py:\d+\)"):
        kernel(np.ones((128, 64), np.float32))


@nki.jit
def in_turns(x, reads_other, private):
    """Each instance keeps its half of x in device memory, and doubles what it, or the other one, has kept."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    kept = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.private_hbm if private else nl.shared_hbm)
    me = nl.program_id(0)
    own, other = nl.ds(me * 64, 64), nl.ds((1 - me) * 64, 64)
    nl.store(kept[own], nl.load(x[own]))
    if private:
        nl.store(kept[other], nl.load(x[other]))
    nl.store(out[other if reads_other else own], nl.load(kept[other if reads_other else own]) * 2.0)
    return out


def test_cores_that_read_what_others_write() -> None:
    """In device memory that all share; on one core it is in the order of instances."""
    x = RNG.standard_normal((128, 40)).astype(np.float32)
    assert np.array_equal(in_turns[nl.nc(2)](x, False, False), 2 * x)
    assert np.array_equal(in_turns[nl.nc(2)](x, True, True), 2 * x)
    with pytest.raises(
        KernelError, match=r"core 0 reads 2560 elements of \w.* that core 1 writes at .*py:\d+; .*one c"
    ):
        in_turns[nl.nc(2)](x, True, False)
