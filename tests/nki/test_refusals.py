"""What a kernel may not do is told with the value, the limit, and the kernel's own file and line."""

import inspect
from collections.abc import Callable

import neuronxcc.nki as nki
import neuronxcc.nki.compiler as ncc
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np
import pytest

from tvm_neuron.errors import KernelError

X = np.random.default_rng(0).standard_normal((256, 64)).astype(np.float32)


def too_many_partitions(x):
    return nl.load(x)


def beyond(x):
    return nl.load(x[200 + nl.arange(100)[:, None], nl.arange(64)[None, :]])


def bad_slice(x):
    return nl.load(x[200:300])


def mixed(x):
    return x[nl.arange(100)[:, None], 0:10]


def unwritten(x):
    return nl.exp(nl.ndarray((128, 64), nl.float32))


def other_shapes(x):
    return nl.load(x[0:128]) + nl.load(x[0:100])


def from_device_memory(x):
    return nl.exp(x[0:128])


def both_in_psum(x):
    a, b = (nl.zeros((128, 64), nl.float32, buffer=nl.psum) for _ in range(2))
    return nisa.tensor_tensor(a, b, np.add)


def over_partitions(x):
    return nl.sum(nl.load(x[0:128]), axis=0)


def unknown_operator(x):
    return nisa.activation(np.cbrt, nl.load(x[0:128]))


def unknown_word(x):
    return nisa.reciprocal(nl.load(x[0:128]), speed=3)


def unknown_dtype(x):
    return nl.ndarray((128, 64), np.float64)


def unknown_dtype_outside(x):
    return nl.ndarray((128, 64), nl.float8_e4m3fn, buffer=nl.shared_hbm)


def unknown_buffer(x):
    return nl.ndarray((128, 64), nl.float32, buffer="cache")


def diagonal_mask(x):
    return nl.load(x[0:128], mask=nl.arange(128)[:, None] < nl.arange(64)[None, :])


def mask_as_truth(x):
    return 1 if nl.arange(128) < 3 else 0


def two_lattices(x):
    return nl.arange(3) * nl.arange(3)


def empty_range(x):
    return nl.arange(0)


def nothing_returned_is_written(x):
    return nl.ndarray((128, 64), nl.float32, buffer=nl.shared_hbm)


def returns_a_tile(x):
    return nl.load(x[0:128])


def wrong_number_of_turns(x):
    place = ncc.sbuf.mod_alloc(base_addr=0, num_free_tiles=(1, 2))
    return nl.ndarray((2, nl.par_dim(128), 64), nl.float32, buffer=place)


def placed_outside(x):
    return nl.ndarray((128, 64), nl.float32, buffer=ncc.sbuf.mod_alloc(base_addr=196400))


def impossible_reshape(x):
    return x.reshape((3, 5))


def bias_of_a_row(x):
    return nisa.activation(np.exp, nl.load(x[0:128]), bias=nl.load(x[0:1]))


def bias_of_whole_numbers(x):
    return nisa.activation(np.exp, nl.load(x[0:128]), bias=nl.zeros((128, 1), nl.int32))


def whole_numbers_transposed(x):
    return nl.copy(nisa.nc_transpose(nl.zeros((128, 64), nl.int32)))


def transposed_into_its_own_shape(x):
    turned = nl.ndarray((128, 64), nl.float32, buffer=nl.psum)
    turned[...] = nisa.nc_transpose(nl.load(x[0:128]))


def stored_in_every_turn(x):
    out = nl.ndarray((128, 16), nl.float32, buffer=nl.shared_hbm)
    for part in nl.affine_range(4):
        for half in nl.affine_range(2):
            nl.store(out[:, nl.ds(8 * half, 8)], nl.load(x[0:128, nl.ds(16 * part + 8 * half, 8)]))
    return out


def more_than_a_byte(x):
    return nl.full((128, 4), 300, nl.int8)


def half_of_a_whole_number(x):
    return nl.full((128, 4), 1.5, nl.int32)


def more_digits_than_float32(x):
    return nl.full((128, 4), 2**24 + 1, nl.int32)


def exact_in_psum(x):
    a, b = (nl.full((128, 64), 3, nl.int32, buffer=memory) for memory in (nl.psum, nl.sbuf))
    return nisa.tensor_tensor(a, b, np.add)


def a_number_of_more_digits(x):
    return nl.full((128, 4), 3, nl.int32) + (2**24 + 1)


def masked_replacement(x):
    mask = (nl.arange(128)[:, None] < 100) & (nl.arange(64)[None, :] < 30)
    tile = nl.load(x[0:128])
    return nl.copy(nisa.nc_match_replace8(tile, nisa.max8(tile), imm=0.0, mask=mask))


def a_constant_of_more_bits(x):
    return nl.load(nl.shared_constant(np.full((128, 4), 2**31), nl.int32))


def a_first_number_of_more_digits(x):
    tile = nl.full((128, 4), 3, nl.int32)
    return nisa.tensor_tensor_scan(tile, tile, 2**24 + 1, np.multiply, np.add)


def carried_by_any_order(x):
    state = nl.zeros((128, 64), nl.float32)
    for turn in nl.affine_range(2):
        state[...] = nl.tanh(state * 0.5 + nl.load(x[turn : turn + 128]))
    out = nl.ndarray((128, 64), nl.float32, buffer=nl.shared_hbm)
    nl.store(out, state)
    return out


def equal_as_a_condition(x):
    tile = nl.load(x[0:128])
    return tile if tile == 0 else -tile


MESSAGES: dict[Callable[..., object], str] = {
    too_many_partitions: r"shape \[256, 64\] has 256 partitions; trn1 has 128: use smaller tiles",
    beyond: r"indices 200 to 299 of axis 0 of arg0\[256, 64\], which has 256; cut them with a mask",
    bad_slice: r"slice 200:300:1 of arg0\[256, 64\], whose axis has 256: stay inside of it",
    mixed: "mixes index lattices with slices; use one kind",
    unwritten: r"sbuf\[128, 64\], made at .*test_refusals.py:\d+, is read before anything is written to it",
    other_shapes: r"\[100, 64\] does not broadcast to \[128, 64\]",
    from_device_memory: "which lies in device memory; engines read SBUF and PSUM: load it first",
    both_in_psum: "both in PSUM; it reads one port: copy one to SBUF first",
    over_partitions: "over axis 0, the partitions; it reduces free axes: transpose it first",
    unknown_operator: "activation has no operator cbrt; it has copy, relu",
    unknown_word: "reciprocal has no operand speed in this model; it has data",
    unknown_dtype: "dtype float64 is none of those that the model has: float32",
    unknown_dtype_outside: "dtype float8_e4m3fn is none of those that the model has: float32",
    unknown_buffer: "buffer='cache'; it is one of nl.sbuf",
    diagonal_mask: "bounds several axes of its lattice at once; an instruction covers a box: use affine_select",
    mask_as_truth: "a mask over an index lattice has no truth value",
    two_lattices: "two index lattices are multiplied; an index is affine",
    empty_range: r"arange\(0,\) is empty",
    nothing_returned_is_written: "but writes nothing to it",
    returns_a_tile: "it returns tensors in device memory, made with buffer=nl.shared_hbm",
    wrong_number_of_turns: r"numbers of tiles \[1, 2\] for 1 block axes; give one for each",
    placed_outside: r"placed at bytes 196400 to 196656 of partitions 0 to 128; SBUF of trn1 has 196608 bytes in 128",
    bias_of_a_row: r"with bias sbuf\[1, 64\]; a bias is \[128, 1\], one number a partition: add a row or a tile",
    bias_of_whole_numbers: r"with bias sbuf\[128, 1\], int32; it is float32 or bfloat16 or float16: cast it",
    whole_numbers_transposed: "int32, by the Tensor engine, which takes floats: use dma_transpose",
    transposed_into_its_own_shape: r"nc_transpose of sbuf\[128, 64\] to psum\[128, 64\]; it gives \[64, 128\]",
    stored_in_every_turn: r"\[128, 8\] is stored in iterations 0 and 1 of an affine_range, which may run in any order",
    carried_by_any_order: r"iteration 1 of an affine_range reads, and writes, what iteration 0 wrote at .* to sbuf",
    equal_as_a_condition: r"sbuf\[128, 64\] as a condition: what it holds is known on the core only",
    more_than_a_byte: r"300 in sbuf\[128, 4\], int8: it holds whole numbers from -128 to 127",
    half_of_a_whole_number: "1.5 in .* int32: it holds whole numbers from",
    more_digits_than_float32: "16777217 in .*a memset is a float32, which has 16777216: load it",
    exact_in_psum: r"add of psum\[128, 64\] .* by GpSimd, which has SBUF alone, where psum\[128, 64\] does not lie",
    a_number_of_more_digits: "16777217 beside .*int32; an engine takes a number as float32, which has 16777216",
    masked_replacement: r"a mask that leaves out elements of sbuf\[128, 64\] for sbuf\[128, 64\]; slice the operands",
    a_constant_of_more_bits: "a constant has numbers from 2147483648 to 2147483648, and becomes int32, which has whole",
    a_first_number_of_more_digits: "16777217 beside .*int32; an engine takes a number as float32, which has 16777216",
    impossible_reshape: r"arg0\[256, 64\] has 16384 elements; shape \[3, 5\] has 15",
}


@pytest.mark.parametrize("kernel", MESSAGES, ids=lambda k: k.__name__)
def test_message(kernel: Callable[..., object]) -> None:
    with pytest.raises(KernelError, match=MESSAGES[kernel]) as caught:
        nki.jit(kernel)(X)
    lines, first = inspect.getsourcelines(kernel)
    places = [f"{__file__}:{first + at}" for at in range(len(lines))]
    assert any(place in str(caught.value) for place in places) or "returns" in str(caught.value)


def test_numbers_of_64_bits_that_32_do_not_hold() -> None:
    with pytest.raises(KernelError, match="argument arg0 has numbers from 0 to 2147483648, and becomes int32"):
        nki.jit(returns_a_tile)(np.array([[0, 2**31]]))
    with pytest.raises(KernelError, match=r"returns sbuf\[1, 2\]"):  # others are taken
        nki.jit(lambda x: nl.load(x))(np.array([[0, -(2**31)]]))


def test_too_many_bytes_name_what_is_alive() -> None:
    @nki.jit
    def kernel(x):
        out = nl.ndarray((128, 60000), nl.float32, buffer=nl.shared_hbm)
        nl.store(out, value=nl.exp(nl.zeros((128, 60000), nl.float32)))
        return out

    with pytest.raises(KernelError, match=r"SBUF is full: 240000 bytes of each partition .* trn1 has 196608"):
        kernel(X)


def test_what_is_stored_in_order_or_apart_is_not_refused() -> None:
    @nki.jit
    def kernel(x):  # type: ignore[no-untyped-def]
        out = nl.ndarray((128, 64), nl.float32, buffer=nl.shared_hbm)
        for _ in nl.sequential_range(2):
            for part in nl.affine_range(4):
                if part == 3:
                    break
                nl.store(out[:, nl.ds(16 * part, 16)], nl.load(x[0:128, nl.ds(16 * part, 16)]))
            for turn in nl.sequential_range(3):
                nl.store(out[:, 48:64], nl.load(x[turn : turn + 128, 48:64]))
        return out

    np.testing.assert_array_equal(kernel(X), np.concatenate([X[:128, :48], X[2:130, 48:]], 1))


def test_what_is_carried_in_order_or_apart_is_not_refused() -> None:
    """Sums in place, parts of a tile for each iteration, tiles written again as a whole, and what is read before."""

    @nki.jit
    def kernel(x):  # type: ignore[no-untyped-def]
        total, state = (nl.zeros((128, 16), nl.float32) for _ in range(2))
        parts, again = (nl.ndarray((128, 64), nl.float32) for _ in range(2))
        given = nl.load(x[0:128])
        for part in nl.affine_range(4):
            place = nl.ds(16 * part, 16)
            parts[:, place] = nl.exp(given[:, place])
            parts[:, place] = parts[:, place] * 2.0
            total += parts[:, place]
            total[...] = nl.add(total, parts[:, place])
            again[:, 0:32] = nl.copy(given[:, 0:32])
            again[...] = nl.copy(given)
            parts[:, place] = again[:, place] + parts[:, place]
        for part in nl.sequential_range(4):
            state[...] = state * 0.5 + given[:, nl.ds(16 * part, 16)]
        out = nl.ndarray((128, 96), nl.float32, buffer=nl.shared_hbm)
        nl.store(out[:, 0:16], total)
        nl.store(out[:, 16:32], state)
        nl.store(out[:, 32:96], parts)
        return out

    powers, some = 2 * np.exp(X[:128]), np.split(X[:128], 4, 1)
    total = 2 * sum(np.split(powers, 4, 1))
    state = sum(part * 0.5 ** (3 - at) for at, part in enumerate(some))
    wanted = np.concatenate([total, state, X[:128] + powers], 1)
    np.testing.assert_allclose(kernel(X), wanted, rtol=1e-5, atol=1e-5)


def test_a_call_outside_of_a_kernel() -> None:
    with pytest.raises(KernelError, match=r"outside of a kernel: decorate the function with nki.jit and call it"):
        nl.zeros((128, 4), nl.float32)


def two_tiles(distance: int, half: bool = False) -> Callable[..., object]:
    """x + 2x by two tiles so many bytes apart; `half`: of which the first is written again before it is read."""

    @nki.jit
    def kernel(x):  # type: ignore[no-untyped-def]
        out = nl.ndarray((128, 64), x.dtype, buffer=nl.shared_hbm)
        one = nl.ndarray((128, 64), x.dtype, buffer=ncc.sbuf.mod_alloc(base_addr=512))
        two = nl.ndarray((128, 64), x.dtype, buffer=ncc.sbuf.mod_alloc(base_addr=512 + distance))
        one[...] = nl.load(x[0:128])
        two[...] = nl.load(x[0:128]) * 2.0
        if half:
            nl.store(out, value=two)
            one[:, 0:16] = nl.load(x[0:128, 0:16])
            one[:, 16:64] = nl.load(x[0:128, 16:64])
            two = out_of(one)
        nl.store(out, value=one + two)
        return out

    def out_of(tile):  # type: ignore[no-untyped-def]
        return tile * 2.0

    return kernel


def test_a_tile_that_another_was_written_on_is_not_read() -> None:
    for distance in (0, 128, -128):
        message = (
            r"is read, in SBUF from byte 512 on, after the one made at .*test_refusals.py:\d+, whose address is among "
            r"these, was written at .*: give them addresses apart.*\(.*test_refusals.py:\d+\)"
        )
        with pytest.raises(KernelError, match=message):
            two_tiles(distance)(X)
    for kernel in (two_tiles(256), two_tiles(-256), two_tiles(0, half=True)):
        assert np.allclose(kernel(X), 3 * X[0:128], atol=1e-6)
