"""Kernels of both dialects, with what NumPy computes in float64."""

import numpy as np
import pytest

from tests.nki import beta1, beta2
from tvm_neuron.errors import KernelError
from tvm_neuron.isa import Tile
from tvm_neuron.nki import Kernel, jit, simulate_kernel
from tvm_neuron.nki.kernel import Traced

Array = np.ndarray
# A float32 sum of n products is off by about sqrt(n) roundings of 2^-24; what is rounded to float16 or bfloat16 in the
# end by half a unit of that, 2^-11 or 2^-9.
FLOAT32, FLOAT16 = 1e-5, 2**-10


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def normal(*shape: int, dtype: str = "float32") -> Array:
    return rng().standard_normal(shape).astype(dtype)


def check(found: Array, wanted: Array, tolerance: float) -> None:
    assert found.shape == wanted.shape
    assert np.abs(found.astype(np.float64) - wanted).max() <= tolerance * max(1.0, np.abs(wanted).max())


def test_a_grid_runs_one_instance_after_the_other() -> None:
    a, b = normal(256, 1024, dtype="float16"), normal(256, 1024, dtype="float16")[::-1].copy()
    check(beta1.add[2, 2](a, b), a.astype(np.float64) + b, FLOAT16)


def test_rows_are_transposed_by_index_lattices() -> None:
    a = rng().integers(-100, 100, (5, 12)).astype(np.int8)
    assert np.array_equal(beta1.transpose_rows(a, (3, 4)), a.reshape(5, 3, 4).transpose(0, 2, 1).reshape(5, 12))


def test_windows_are_averaged_over_two_axes_that_are_no_neighbours() -> None:
    a = normal(4, 12, 8)
    check(beta1.average_pool(a, 2), a.astype(np.float64).reshape(4, 6, 2, 4, 2).mean((2, 4)), FLOAT32)


def test_products_are_added_in_psum() -> None:
    a, b = normal(256, 128), normal(256, 1024)
    wanted = a.astype(np.float64).T @ b.astype(np.float64)
    check(beta1.product(a, b), wanted, FLOAT32)
    check(beta2.product(a, b), wanted, FLOAT32)


def test_images_are_convolved_by_taps() -> None:
    """Windows whose rows do not lie one after the other, to sums that do."""
    x, w = normal(32, 14, 12), normal(48, 32, 3, 3)

    def wanted(image: Array) -> Array:
        high, wide = image.shape[1] - 2, image.shape[2] - 2
        taps = [(w[:, :, a, b], image[:, a : a + high, b : b + wide]) for a, b in np.ndindex(3, 3)]
        return np.asarray(sum(np.einsum("oc,chw->ohw", tap, window) for tap, window in taps))

    wide = x.astype(np.float64)
    check(beta2.convolution(x, w), wanted(wide), FLOAT32)
    check(beta1.convolution(x, w), wanted(np.pad(wide, ((0, 0), (1, 1), (1, 1)))), FLOAT32)


def test_a_norm_by_rows_and_a_weight_on_every_partition() -> None:
    x, weight = normal(300, 640), normal(640)
    wide = x.astype(np.float64)
    wanted = wide / np.sqrt((wide**2).mean(1, keepdims=True) + 1e-5) * weight
    check(beta1.rms_norm(x, weight, 1e-5), wanted, FLOAT32)


def test_softmax_of_rows() -> None:
    x = 3 * normal(128, 512)
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    check(beta1.softmax(x), e / e.sum(1, keepdims=True), FLOAT32)
    check(beta2.softmax(x), e / e.sum(1, keepdims=True), FLOAT32)


def test_a_value_that_is_stored_and_read_again_is_written_to_both_places() -> None:
    x = normal(128, 64)
    y, z = beta1.kept(x)
    check(y, np.exp(x.astype(np.float64)), FLOAT32)
    check(z, np.exp(x.astype(np.float64)) * 2 - 5, FLOAT32)


def test_sums_over_loops_and_blocks() -> None:
    x = normal(4, 128, 96)
    check(beta1.block_sums(x), x.astype(np.float64).sum(0), FLOAT32)


@pytest.mark.parametrize("mode", ["nest", "step", "strict"])
def test_all_modes_give_the_same_bits(mode: str) -> None:
    traced = trace(beta1.softmax, 3 * normal(128, 512))
    assert np.array_equal(traced.run(mode), traced.run())


def trace(kernel: Kernel, *args: Array) -> Traced:
    return kernel.trace(*args)


def test_time_comes_from_the_same_program() -> None:
    small, large = (trace(beta1.softmax, normal(128, n)).time() for n in (512, 2048))
    assert 2 * small.busy_ps["act"] < large.busy_ps["act"] < 5 * small.busy_ps["act"]
    assert large.dram_read_bytes == 128 * 2048 * 4 == large.dram_written_bytes


def test_simulate_and_jit_of_a_plain_function() -> None:
    x = normal(128, 512)
    assert np.array_equal(simulate_kernel(beta1.softmax.function, x), beta1.softmax(x))
    assert jit(beta1.softmax) is beta1.softmax


def test_a_diagonal_is_selected_and_rows_are_summed_on_the_way() -> None:
    x = normal(128, 256)
    parts = np.exp(x.astype(np.float64)).reshape(128, 2, 128) * np.tri(128)[:, None]
    check(beta1.causal_softmax(x), (parts / parts.sum(2, keepdims=True)).reshape(128, 256), FLOAT32)


def test_transpositions_by_the_tensor_engine() -> None:
    x = normal(100, 60)
    check(beta1.transposed(x), 2 * x.T.astype(np.float64), FLOAT32)


def test_a_scan() -> None:
    a, b, start = normal(64, 90), normal(64, 90)[::-1].copy(), normal(64, 1)
    wanted, state = np.empty(a.shape), start[:, 0].astype(np.float64)
    for at in range(a.shape[1]):
        wanted[:, at] = state = a[:, at] * state + b[:, at]
    check(beta1.scan(a, b, start), wanted, FLOAT32)


def test_whole_parts() -> None:
    x = 9 * normal(20, 30)  # the kernel doubles it first, which is exact
    for found, function in zip(beta1.whole_parts(x), (np.floor, np.ceil, np.trunc), strict=True):
        assert np.array_equal(found, function(2 * x))


@pytest.mark.parametrize("mode", ["nest", "strict"])
def test_tiles_lie_where_the_kernel_says(mode: str) -> None:
    x = normal(5, 128, 64)
    traced = trace(beta1.placed, x)
    assert np.array_equal(traced.run(mode), x + np.float32(1))
    loads = [one for one in traced.assembled.program.body if one.destination.shape == (128, 64) and one.engine == "dma"]
    addresses = [one.destination.offset.base for one in loads if hasattr(one.destination, "space")]
    assert addresses == [1024, 1280, 1024, 1280, 1024]


def test_addresses_of_later_versions() -> None:
    x = normal(128, 64)
    traced = trace(beta2.by_hand, x, 320)
    check(traced.run("strict"), np.exp(x.astype(np.float64)) + x, FLOAT32)
    tiles = [tile for one in traced.assembled.program.body for *_, tile in one.tiles()]
    assert {tile.offset.base for tile in tiles if isinstance(tile, Tile)} == {64, 320}
    for at, partition, said in (
        (192, 0, r"is read, in SBUF from byte 64 on, after the one made at .*, whose address is among these"),
        (320, 64, "a tile is placed at bytes 320 to 576 of partitions 64 to 192; SBUF of trn1 has 196608 bytes in 128"),
        (1.5, 0, r"address=\(0, 1.5\); it is \(first partition, byte of a partition\), two whole numbers"),
    ):
        with pytest.raises(KernelError, match=said):
            beta2.by_hand(x, at, partition)


def test_cores_that_write_to_one_place() -> None:
    assert np.array_equal(beta2.all_of_it(normal(16, 8)), normal(16, 8))
    with pytest.raises(KernelError, match=r"core 1 writes 128 elements of .* that core 0 writes at .*py:\d+; which is"):
        beta2.all_of_it[2](normal(16, 8))


def test_a_call_without_its_destination() -> None:
    with pytest.raises(KernelError, match="activation without dst; it takes dst, op, data, bias"):
        beta2.without_a_destination(normal(16, 8))


def test_a_norm_by_statistics_of_parts() -> None:
    x = 2 * normal(100, 700) + 3
    wide = x.astype(np.float64)
    wanted = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    check(beta1.layer_norm(x), wanted, FLOAT32)


def test_addresses_counted_up_in_a_loop_are_those_of_its_first_turn() -> None:
    x = normal(5, 64, 96)  # five turns of 128 KiB would leave SBUF
    check(beta1.placed_by_a_counter(x), 2 * x.astype(np.float64), FLOAT32)


def test_whole_numbers_without_a_sign_on_chip() -> None:
    x = rng().integers(0, 9, (60, 200)).astype(np.float32)  # with many that are equal
    assert np.array_equal(beta1.first_largest(x)[:, 0], x.argmax(1))
