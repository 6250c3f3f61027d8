"""Products that meet in PSUM: the first one of an element overwrites it, later ones add; all else is refused."""

from collections.abc import Callable

import neuronxcc.nki as beta1
import neuronxcc.nki.language as nl1
import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest

from tvm_neuron.errors import KernelError

TOLERANCE = 1e-4  # 128 products of normal numbers in float32
A, B, C = np.random.default_rng(3).standard_normal((3, 128, 64)).astype(np.float32)
AB, AC = (A.astype(np.float64).T @ each for each in (B, C))


def in_psum(body: Callable[..., None]) -> np.ndarray:
    """What `body` leaves in a tile in PSUM, which it is given with the tiles of A, B and C."""

    @nki.jit
    def kernel(*given):  # type: ignore[no-untyped-def]
        tiles = [nl.ndarray(each.shape, nl.float32, buffer=nl.sbuf) for each in given]
        for tile, each in zip(tiles, given, strict=True):
            nisa.dma_copy(dst=tile, src=each)
        psum, kept = nl.ndarray((64, 64), nl.float32, buffer=nl.psum), nl.ndarray((64, 64), nl.float32)
        body(psum, *tiles)
        nisa.tensor_copy(kept, psum)
        out = nl.ndarray((64, 64), nl.float32, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out, src=kept)
        return out

    return kernel(A, B, C)


def test_what_a_product_covers_is_added_to_in_parts_and_in_other_shapes() -> None:
    def part_after_whole(psum, a, b, c):  # type: ignore[no-untyped-def]
        nisa.nc_matmul(psum, a, b)
        nisa.nc_matmul(psum[:, 16:32], a, c[:, 16:32])

    def whole_after_parts(psum, a, b, c):  # type: ignore[no-untyped-def]
        nisa.nc_matmul(psum[:, 0:48], a, b[:, 0:48])
        nisa.nc_matmul(psum[:, 48:64], a, b[:, 48:64])
        nisa.nc_matmul(psum.reshape((64, 8, 8)), a, c.reshape((128, 8, 8)))

    wanted = AB.copy()
    wanted[:, 16:32] += AC[:, 16:32]
    np.testing.assert_allclose(in_psum(part_after_whole), wanted, atol=TOLERANCE)
    np.testing.assert_allclose(in_psum(whole_after_parts), AB + AC, atol=TOLERANCE)


@pytest.mark.parametrize("accumulate", [None, True, False])
def test_zeros_are_as_good_as_nothing(accumulate: bool | None) -> None:
    def body(psum, a, b, _):  # type: ignore[no-untyped-def]
        nisa.memset(psum, 0.0)
        nisa.nc_matmul(psum, a, b, accumulate=accumulate)

    np.testing.assert_allclose(in_psum(body), AB, atol=TOLERANCE)


def test_what_was_written_since_is_overwritten_where_the_kernel_says_so() -> None:
    def body(psum, a, b, c):  # type: ignore[no-untyped-def]
        nisa.nc_matmul(psum, a, b)
        nisa.memset(psum[:, 0:8], 1.0)
        nisa.nc_matmul(psum, a, c, accumulate=False)
        nisa.nc_matmul(psum, a, b, accumulate=True)

    np.testing.assert_allclose(in_psum(body), AC + AB, atol=TOLERANCE)


def after_a_part(psum, a, b, c):  # type: ignore[no-untyped-def]
    nisa.nc_matmul(psum[:, 0:32], a, b[:, 0:32])
    nisa.nc_matmul(psum, a, c)


def after_ones(psum, a, b, c):  # type: ignore[no-untyped-def]
    nisa.nc_matmul(psum, a, b)
    nisa.memset(psum[:, 0:8], 1.0)
    nisa.nc_matmul(psum, a, c)


def after_a_transposition(psum, a, b, c):  # type: ignore[no-untyped-def]
    nisa.nc_transpose(psum, b[0:64])
    nisa.nc_matmul(psum, a, c)


def after_nothing(psum, a, b, c):  # type: ignore[no-untyped-def]
    nisa.nc_matmul(psum, a, b, accumulate=True)


OTHER = "holds something other than sums of products; that is undefined on the core: overwrite it"
MESSAGES = {
    after_a_part: "of which a part holds sums and another does not: write all of it first",
    after_ones: OTHER,
    after_a_transposition: OTHER,
    after_nothing: r"\(accumulate=True\) to psum\[64, 64\], to which nothing has been written",
}


@pytest.mark.parametrize("body", MESSAGES, ids=lambda body: body.__name__)
def test_what_has_no_meaning_is_refused(body: Callable[..., None]) -> None:
    with pytest.raises(KernelError, match=rf"{MESSAGES[body]}.*test_contents.py:\d+\)"):
        in_psum(body)


def test_zeros_beside_sums_are_written() -> None:
    """A tile of zeros in Beta 1, of which products reach some columns alone, is read as a whole."""

    @beta1.jit
    def kernel(a, b):  # type: ignore[no-untyped-def]
        out = nl1.ndarray((64, 64), nl1.float32, buffer=nl1.shared_hbm)
        psum = nl1.zeros((64, 64), nl1.float32, buffer=nl1.psum)
        psum[:, 16:32] += nl1.matmul(nl1.load(a), nl1.load(b[:, 16:32]), transpose_x=True)
        nl1.store(out, value=psum)
        return out

    wanted = np.zeros((64, 64))
    wanted[:, 16:32] = AB[:, 16:32]
    np.testing.assert_allclose(kernel(A, B), wanted, atol=TOLERANCE)
