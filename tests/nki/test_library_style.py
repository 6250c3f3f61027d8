"""What libraries of kernels use of the language, against NumPy."""

import ml_dtypes
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest

from tests.nki import beta1
from tests.nki import library_style as kernels
from tvm_neuron.errors import KernelError, ProgramError
from tvm_neuron.nki import jit

RANDOM = np.random.default_rng(23)


def normal(*shape: int, dtype: object = np.float32) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(dtype)  # type: ignore[call-overload]


def test_access_patterns_count_through_the_tensor() -> None:
    x = normal(64, 20)
    even = x[32:, ::2]
    np.testing.assert_array_equal(kernels.patterned(x), np.stack([even, 2 * even], 1))


@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
def test_places_in_tiles_choose_rows_and_elements(dtype: type) -> None:
    x, rows = normal(40, 24), RANDOM.integers(0, 40, (16, 1)).astype(dtype)
    out, one = kernels.chosen(x, rows, np.array([[7]], dtype))
    np.testing.assert_array_equal(out, x[rows[:, 0]])
    assert one[0, 0] == x[3, 7]


def test_whole_numbers_are_divided_to_floats_and_choose_rows() -> None:
    x = normal(34, 12)
    np.testing.assert_array_equal(beta1.nearest(x, 100), x[np.arange(100) // 3])


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int16, np.uint8])
@pytest.mark.parametrize("chip", ["trn1", "trn2"])
def test_copies_and_transposes_of_whole_numbers_keep_all_digits(chip: str, dtype: type) -> None:
    ends = np.iinfo(dtype)
    x = RANDOM.integers(ends.min, ends.max, (130, 45), dtype, endpoint=True)
    np.testing.assert_array_equal(kernels.transposed.on(chip)(x), x.T)
    for found in kernels.copied_and_turned.on(chip)(x[:100]):
        np.testing.assert_array_equal(found, x[:100].T)


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int8])
def test_fills_reach_the_ends_of_whole_numbers(dtype: type) -> None:
    ends = np.iinfo(dtype)
    np.testing.assert_array_equal(kernels.filled(np.zeros((4, 3), dtype), ends.max), np.full((4, 3), ends.max, dtype))
    np.testing.assert_array_equal(kernels.filled(np.zeros((4, 3), dtype), ends.min), np.full((4, 3), ends.min, dtype))


@pytest.mark.parametrize("chip", ["trn1", "trn2"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_transposed_loads_are_as_large_as_a_tensor(chip: str, dtype: str) -> None:
    x = normal(300, 100, dtype=np.dtype(getattr(ml_dtypes, dtype, dtype)))
    traced = kernels.transposed.on(chip).trace(x)
    np.testing.assert_array_equal(traced.run(), x.T)
    np.testing.assert_array_equal(kernels.turned_by_identity.on(chip)(x[:128]), x[:128].T)
    assert bool(traced.time().busy_ps.get("pe")) == (chip == "trn1")  # later cores' DMA transposes at a rate of its own


def test_vector_transposes_and_brings_a_row_to_all_partitions() -> None:
    x, row = normal(20, 32), normal(1, 32)
    turned, product = kernels.rows_and_columns(x, row)
    np.testing.assert_array_equal(turned, x.T)
    np.testing.assert_array_equal(product, x * row)


@pytest.mark.parametrize("mode", ["none", "double_row"])
@pytest.mark.parametrize("dtype", [ml_dtypes.float8_e4m3, ml_dtypes.float8_e5m2])
def test_products_of_8_bit_floats(dtype: type, mode: str) -> None:
    a, b = normal(256, 48), normal(256, 80)
    wanted = a.astype(dtype).astype(np.float64).T @ b.astype(dtype).astype(np.float64)
    found = kernels.product.on("trn2")(a, b, np.dtype(dtype), mode)
    # Sums of 256 products in float32: about 16 roundings of 2^-24 of what is summed.
    assert np.abs(found - wanted).max() <= 2**-20 * (np.abs(a).T @ np.abs(b)).max()


def test_two_8_bit_floats_at_a_time_take_half_the_time_of_one() -> None:
    a, b = normal(256, 128), normal(256, 512)
    busy = [kernels.product.on("trn2").trace(a, b, nl.float8_e4m3, mode).time().busy_ps["pe"]
            for mode in ("none", "double_row")]  # fmt: skip
    assert busy[0] == 2 * busy[1]


@pytest.mark.parametrize(("chip", "message"), [
    ("trn1", r"library_style.py:\d+.*nc_matmul_pairs: trn1 multiplies no two 8-bit floats at a time; trn2 does"),
    ("inf1", r"library_style.py:\d+.*nc_matmul: float8_e4m3 x float8_e4m3 -> float32; inf1 multiplies bfloat16"),
])  # fmt: skip
def test_chips_without_8_bit_floats(chip: str, message: str) -> None:
    mode = "none" if chip == "inf1" else "double_row"
    with pytest.raises(ProgramError, match=message):
        kernels.product.on(chip)(normal(256, 8), normal(256, 8), nl.float8_e4m3, mode)


@pytest.mark.parametrize(("first", "rows"), [(0, 64), (16, 8)])
def test_an_input_that_is_written_to_and_returned_keeps_the_rest(first: int, rows: int) -> None:
    x, cache = normal(rows, 32), normal(64, 32)
    wanted = cache.copy()
    wanted[first : first + rows] = x
    traced = kernels.added_to.trace(x, cache, first)
    np.testing.assert_array_equal(traced.run(), wanted)
    copies = sum(type(node).__name__ == "DmaCopy" for node in traced.assembled.program.body)
    assert copies == (2 if rows == 64 else 3)  # what is written whole isn't brought before


def test_bytes_of_another_dtype() -> None:
    x = RANDOM.integers(0, 2**32, (8, 6), np.uint32)
    found, back = kernels.as_bytes(x)
    np.testing.assert_array_equal(found, x.view(np.uint8))
    np.testing.assert_array_equal(back, x)


def _refused(body: object, message: str) -> None:
    with pytest.raises(KernelError, match="(?s)" + message + r".*test_library_style\.py:\d+"):
        jit(body)(normal(64, 20), np.zeros((64, 1), np.int32))


def outside(x, _):  # type: ignore[no-untyped-def]
    return x.ap([[20, 65], [1, 20]])


def out_of_its_partition(x, _):  # type: ignore[no-untyped-def]
    return nl.ndarray((64, 20), nl.float32).ap([[20, 64], [1, 20]], offset=3)


def at_places_in_device_memory(x, rows):  # type: ignore[no-untyped-def]
    return x.ap([[20, 64], [1, 20]], vector_offset=rows)


def scattered(x, rows):  # type: ignore[no-untyped-def]
    tile, places = nl.ndarray((64, 20), nl.float32), nl.ndarray((64, 1), nl.int32)
    nisa.dma_copy(tile, x)
    nisa.dma_copy(places, rows)
    nisa.dma_copy(x.ap([[20, 64], [1, 20]], vector_offset=places), tile)


def half_an_element(x, _):  # type: ignore[no-untyped-def]
    return nl.ndarray((64, 3), nl.uint8).view(nl.float32)


def later_chips(x, _):  # type: ignore[no-untyped-def]
    nisa.nc_matmul_mx(x, x)


def unknown_mode(x, _):  # type: ignore[no-untyped-def]
    tile = nl.ndarray((64, 20), nl.float32)
    nisa.dma_copy(tile, x)
    nisa.nc_matmul(nl.ndarray((20, 20), nl.float32, buffer=nl.psum), tile, tile, perf_mode="double_pixel")


def unknown_field(x, _):  # type: ignore[no-untyped-def]
    return kernels.Plain(size=3)


def no_result(x, _):  # type: ignore[no-untyped-def]
    nisa.tensor_tensor(x, x, op=nl.add)


def unknown_name(x, _):  # type: ignore[no-untyped-def]
    nisa.tensor_copi(x, x)


def no_number(x, _):  # type: ignore[no-untyped-def]
    return nl.ndarray((64, 20), nl.float32) + np.ones((64, 20))


def no_number_to_fill_with(x, _):  # type: ignore[no-untyped-def]
    nisa.memset(nl.ndarray((64, 20), nl.float32), "zero")


def no_such_axis(x, _):  # type: ignore[no-untyped-def]
    nisa.tensor_reduce(nl.ndarray((64, 1), nl.float32), nl.add, nl.ndarray((64, 20), nl.float32), 2)


def truth_of_a_tile(x, _):  # type: ignore[no-untyped-def]
    return x if nl.ndarray((64, 20), nl.float32) else None


def other_size(x, _):  # type: ignore[no-untyped-def]
    nisa.dma_copy(nl.ndarray((64, 10), nl.float32), x)


def a_third(x, _):  # type: ignore[no-untyped-def]
    return nl.ndarray((64, 20 / 3), nl.float32)


def its_own_error(x, _):  # type: ignore[no-untyped-def]
    raise ValueError("too small")


def given_but_not_returned(x, _):  # type: ignore[no-untyped-def]
    tile = nl.ndarray((64, 20), nl.float32)
    out = nl.ndarray((64, 20), nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(tile, x)
    nisa.dma_copy(out, tile)
    nisa.dma_copy(x, tile)
    return out


@pytest.mark.parametrize(("kernel", "message"), [
    (outside, r"pattern \[\[20, 65\], \[1, 20\]\] from 0 of .* chooses elements 0 to 1299 of a tensor of 1280"),
    (out_of_its_partition, "chooses elements 3 to 1282 of a tensor of 1280"),
    (at_places_in_device_memory, r"at places in arg1\[64, 1\]: a tile says them"),
    (scattered, "the destination is .* at places known at run time; it is a tensor or a part of one"),
    (half_an_element, r"the bytes of sbuf\[64, 3\], which is uint8, as float32: the model takes whole elements"),
    (later_chips, r"nc_matmul_mx does not run: it is of NeuronCore-v4 \(Trn3\); the model has v2 and v3"),
    (unknown_mode, "nc_matmul with perf_mode=double_pixel; the model has none and double_row"),
    (unknown_field, "Plain has no field size"),
    (no_result, "tensor_tensor: missing a required argument: 'data2'; it takes dst, data1, data2, op, engine"),
    (unknown_name, "nki.isa has no tensor_copi in this model; is tensor_copy meant"),
    (no_number, r"a scalar operand is ndarray .* it is a number or a tile"),
    (no_number_to_fill_with, "the value of a memset is str 'zero'; it is a number or a tile"),
    (no_such_axis, r"tensor_reduce of sbuf\[64, 20\] over axes \[2\]; it has axes 0 to 1"),
    (truth_of_a_tile, r"sbuf\[64, 20\] as a condition: what it holds is known on the core only; use nl.where"),
    (other_size, r"sbuf\[64, 10\] where shape \[64, 20\] is meant: make both of as many elements"),
    (a_third, r"its axes are whole numbers: divide by //"),
    (its_own_error, "kernel 'its_own_error' ends in ValueError: too small"),
    (given_but_not_returned, "the kernel writes to its input arg0, but does not return it: return it as well"),
])  # fmt: skip
def test_message(kernel: object, message: str) -> None:
    _refused(kernel, message)


def returns_nothing(x):  # type: ignore[no-untyped-def]
    nl.ndarray((64, 20), nl.float32)


def test_kernels_that_are_called_wrongly() -> None:
    kernel, x = jit(returns_nothing), normal(64, 20)
    for call, message in (
        (lambda: kernel(x), "the kernel returns nothing; it returns tensors in device memory"),
        (lambda: kernel(x, x), r"kernel 'returns_nothing' takes \(x\): too many positional arguments"),
        (lambda: kernel[-1](x), r"is launched on a grid of \[-1\]: give whole numbers from 0 on"),
        (lambda: jit(3), "nki.jit of int 3; it makes a kernel of a function"),
    ):
        with pytest.raises(KernelError, match=message):
            call()


def test_names_that_the_model_lacks_are_none_to_python_either() -> None:
    assert not hasattr(nisa, "tensor_copi")
    assert hasattr(nisa, "nc_matmul_mx")  # libraries mention it; calling it is refused
