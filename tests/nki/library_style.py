"""Kernels that use what libraries of kernels do: access patterns, places in tiles, 8-bit floats, given outputs."""

# mypy: ignore-errors
from dataclasses import dataclass

import nki
import nki.isa as nisa
import nki.language as nl

from tests.nki.beta2 import loaded


@dataclass
class Sizes(nl.NKIObject):
    """Sizes that a kernel is made for."""

    rows: int
    rest: int
    columns: int
    factor = 2.0


class Plain(nl.NKIObject):
    """Fields by name, without dataclass."""

    offset: int = 0


@nki.jit
def patterned(x):
    """Every second column of the second half of the rows, the columns in pairs, and those of a diagonal block."""
    sizes = Sizes(rows=x.shape[0] // 2, columns=x.shape[1])
    assert sizes.rest is None  # a published kernel leaves one of its fields out
    start = Plain(offset=sizes.rows * sizes.columns)
    out = nl.ndarray((sizes.rows, 2, sizes.columns // 2), nl.float32, buffer=nl.shared_hbm)
    far = nl.ndarray((sizes.rows, sizes.columns // 2), nl.float32)
    nisa.dma_copy(far, x.ap([[sizes.columns, sizes.rows], [2, sizes.columns // 2]], offset=start.offset))
    both = nl.ndarray((sizes.rows, sizes.columns), nl.float32)
    pairs = both.ap([[sizes.columns, sizes.rows], [sizes.columns // 2, 2], [1, sizes.columns // 2]])
    nisa.tensor_copy(pairs[:, 0], far)
    nisa.tensor_scalar(pairs[:, 1], far, nl.multiply, sizes.factor)
    nisa.dma_copy(out, both)
    return out


@nki.jit
def chosen(x, rows, column):
    """Rows of x by a tile of numbers, and of row 3 the element whose number lies in another."""
    count, width = rows.shape[0], x.shape[1]
    out = nl.ndarray((count, width), x.dtype, buffer=nl.shared_hbm)
    one = nl.ndarray((1, 1), x.dtype, buffer=nl.shared_hbm)
    places, place = loaded(rows), loaded(column)
    tile, number = nl.ndarray((count, width), x.dtype), nl.ndarray((1, 1), x.dtype)
    pattern = [[width, count], [1, width]]
    nisa.dma_copy(tile, x.ap(pattern, vector_offset=places, indirect_dim=0))
    nisa.dma_copy(out, tile)
    nisa.dma_copy(number, x.ap([[width, 1], [1, 1]], offset=3 * width, scalar_offset=place, indirect_dim=1))
    nisa.dma_copy(one, number)
    return out, one


@nki.jit
def transposed(x):
    """[columns, rows] of x [rows, columns], more rows than a tile has partitions."""
    out = nl.ndarray((x.shape[1], x.shape[0]), x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((x.shape[1], x.shape[0]), x.dtype)
    nisa.dma_transpose(dst=tile, src=x, axes=(1, 0))
    nisa.dma_copy(out, tile)
    return out


@nki.jit
def copied_and_turned(x):
    """[columns, rows] of x [rows, columns] twice: from a copy in SBUF, and from one that was in PSUM."""
    shape = (x.shape[1], x.shape[0])
    found = []
    for buffer in (nl.sbuf, nl.psum):
        out = nl.ndarray(shape, x.dtype, buffer=nl.shared_hbm)
        copy, again = nl.ndarray(x.shape, x.dtype, buffer=buffer), nl.ndarray(x.shape, x.dtype)
        tile = nl.ndarray(shape, x.dtype)
        nisa.tensor_copy(copy, loaded(x))
        nisa.tensor_copy(again, copy)
        nisa.dma_transpose(dst=tile, src=again)
        nisa.dma_copy(out, tile)
        found.append(out)
    return tuple(found)


@nki.jit
def filled(x, value):
    """x filled with a number."""
    out, tile = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm), nl.ndarray(x.shape, x.dtype)
    nisa.memset(tile, value)
    nisa.dma_copy(out, tile)
    return out


@nki.jit
def turned_by_identity(x):
    """The transposed of x, a product with ones."""
    out = nl.ndarray((x.shape[1], x.shape[0]), x.dtype, buffer=nl.shared_hbm)
    total = nl.ndarray((x.shape[1], x.shape[0]), nl.float32, buffer=nl.psum)
    nisa.nc_matmul(total, loaded(x), nl.shared_identity_matrix(x.shape[0], dtype=x.dtype))
    tile = nl.ndarray(total.shape, x.dtype)
    nisa.tensor_copy(tile, total)
    nisa.dma_copy(out, tile)
    return out


@nki.jit
def product(a, b, dtype, perf_mode="none"):
    """a.T @ b of a [256, M] and b [256, N], multiplied in `dtype`: by two products, or by one of pairs."""
    out = nl.ndarray((a.shape[1], b.shape[1]), nl.float32, buffer=nl.shared_hbm)
    total = nl.ndarray(out.shape, nl.float32, buffer=nl.psum)
    left, right = (nl.ndarray((128, 2, each.shape[1]), dtype) for each in (a, b))
    for tile, source in ((left, a), (right, b)):
        for half in range(2):
            nisa.tensor_copy(tile[:, half], loaded(source[half * 128 : half * 128 + 128]))
    if perf_mode == "double_row":
        nisa.nc_matmul(total, left, right, perf_mode=nisa.matmul_perf_mode.double_row)
    else:
        for half in range(2):
            nisa.nc_matmul(total, left[:, half], right[:, half])
    found = nl.ndarray(out.shape, nl.float32)
    nisa.tensor_copy(found, total)
    nisa.dma_copy(out, found)
    return out


@nki.jit
def pairs(a, b):
    """The same in the dtype of the operands, of pairs where the chip has them."""
    is_new = nisa.get_nc_version() >= nisa.nc_version.gen3
    return product.function(a, b, a.dtype, "double_row" if is_new else "none")


@nki.jit
def added_to(x, cache, first):
    """`cache`, which is given, with x in its rows from `first` on."""
    nisa.dma_copy(cache[first : first + x.shape[0]], loaded(x))
    return cache


@nki.jit
def as_bytes(x):
    """The bytes of x, of 32 bits, as whole numbers of 8, and back from a copy of these."""
    out = nl.ndarray((x.shape[0], 4 * x.shape[1]), nl.uint8, buffer=nl.shared_hbm)
    back = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    tile = loaded(x)
    copied = nl.ndarray(out.shape, nl.uint8)
    nisa.tensor_copy(copied, tile.view(nl.uint8))
    nisa.dma_copy(out, copied)
    nisa.dma_copy(back, copied.ap([[x.shape[1], x.shape[0]], [1, x.shape[1]]], dtype=x.dtype))
    return out, back


@nki.jit
def rows_and_columns(x, row):
    """x.T, each row of x times the one row, and how many instances there are, without a grid."""
    assert nl.num_programs(0) == 1
    turned = nl.ndarray((x.shape[1], x.shape[0]), x.dtype)
    nisa.nc_transpose(turned, loaded(x), engine=nisa.vector_engine)
    everywhere, product = (nl.ndarray(x.shape, x.dtype) for _ in range(2))
    nisa.nc_stream_shuffle(src=loaded(row)[0:1, :], dst=everywhere, shuffle_mask=[0] * 32)
    pairs = loaded(x).reshape((x.shape[0], x.shape[1] // 2, 2))
    nisa.tensor_tensor(product, everywhere, pairs, op=nl.multiply)
    outs = [nl.ndarray(each.shape, x.dtype, buffer=nl.shared_hbm) for each in (turned, product)]
    nisa.dma_copy(outs[0], turned)
    nisa.dma_copy(outs[1], product)
    return tuple(outs)
