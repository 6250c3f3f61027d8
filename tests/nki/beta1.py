"""Kernels as Beta 1 writes them."""

# mypy: ignore-errors
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def add(a, b):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    i_p = nl.program_id(0) * 128 + nl.arange(128)[:, None]
    i_f = nl.program_id(1) * 512 + nl.arange(512)[None, :]
    nl.store(out[i_p, i_f], value=nl.load(a[i_p, i_f]) + nl.load(b[i_p, i_f]))
    return out


@nki.jit
def transpose_rows(a, shape):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    rows, columns = shape
    tile, turned = nl.load(a), nl.ndarray(a.shape, dtype=a.dtype)
    i_p, i_r, i_c = nl.mgrid[0 : a.shape[0], 0:rows, 0:columns]
    turned[i_p, i_c * rows + i_r] = nl.copy(tile[i_p, i_r * columns + i_c])
    nl.store(out, value=turned)
    return out


@nki.jit
def average_pool(a, size):
    p, h, w = a.shape
    out = nl.ndarray((p, h // size, w // size), dtype=a.dtype, buffer=nl.shared_hbm)
    tile = nl.load(a)
    i = nl.mgrid[0:p, 0 : h // size, 0:size, 0 : w // size, 0:size]
    nl.store(out, nl.sum(tile[i[0], size * i[1] + i[2], size * i[3] + i[4]], axis=[2, 4]) / (size * size))
    return out


@nki.jit
def product(a, b):
    out = nl.ndarray((a.shape[1], b.shape[1]), dtype=a.dtype, buffer=nl.shared_hbm)
    for n in nl.affine_range(b.shape[1] // 512):
        total = nl.zeros((a.shape[1], 512), nl.float32, buffer=nl.psum)
        for k in nl.affine_range(a.shape[0] // 128):
            left = nl.load(a[nl.ds(k * 128, 128), :])
            total += nisa.nc_matmul(left, nl.load(b[nl.ds(k * 128, 128), nl.ds(n * 512, 512)]))
        nl.store(out[:, nl.ds(n * 512, 512)], value=nl.copy(total, dtype=out.dtype))
    return out


@nki.jit
def convolution(x, w):
    """[O, H, W] of an image [C, H, W] and weights [O, C, 3, 3], with zeros around: a product for each tap."""
    channels, high, wide = x.shape
    out = nl.ndarray((w.shape[0], high, wide), dtype=x.dtype, buffer=nl.shared_hbm)
    padded = nl.zeros((nl.par_dim(channels), high + 2, wide + 2), dtype=x.dtype)
    i_c, i_h, i_w = nl.mgrid[0:channels, 0:high, 0:wide]
    padded[i_c, i_h + 1, i_w + 1] = nl.load(x[i_c, i_h, i_w])
    weights = nl.load(w.reshape((w.shape[0], channels * 9)))
    i_o, i_k = nl.arange(w.shape[0])[:, None], nl.arange(channels)[None, :]
    total = nl.zeros((nl.par_dim(w.shape[0]), high, wide), dtype=nl.float32, buffer=nl.psum)
    for a in nl.affine_range(3):
        for b in nl.affine_range(3):
            tap = nl.copy(nisa.nc_transpose(nl.copy(weights[i_o, i_k * 9 + a * 3 + b])))
            total += nisa.nc_matmul(tap, padded[i_c, i_h + a, i_w + b])
    nl.store(out, value=total)
    return out


@nki.jit
def rms_norm(x, weight, eps):
    rows, columns = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    i_p, i_f = nl.arange(128)[:, None], nl.arange(columns)[None, :]
    scale = nl.load(weight.reshape((1, columns)))
    for i in nl.affine_range((rows + 127) // 128):
        mask = i * 128 + i_p < rows
        tile = nl.load(x[i * 128 + i_p, i_f], mask=mask)
        mean = nl.sum(nl.square(tile, mask=mask), axis=[1], mask=mask) / columns
        normed = nl.multiply(tile, nl.rsqrt(nl.add(mean, eps, mask=mask), mask=mask), mask=mask)
        normed[...] = nl.multiply(normed, scale.broadcast_to((128, columns)), mask=mask)
        nl.store(out[i * 128 + i_p, i_f], value=normed, mask=mask)
    return out


@nki.jit
def softmax(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    top = nisa.tensor_reduce(np.max, tile, axis=1, negate=True)
    powers = nisa.activation(op=np.exp, data=tile, bias=top)
    share = nisa.reciprocal(nl.sum(powers, axis=1))
    nl.store(out, value=nisa.tensor_scalar(powers, np.multiply, share))
    return out


@nki.jit
def kept(x):
    y, z = (nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm) for _ in range(2))
    place = nl.ndarray(x.shape, dtype=x.dtype)
    value = nl.exp(nl.load(x))
    place[...] = value
    nl.store(y, value=place)
    place[...] = 5.0
    nl.store(z, value=value * 2.0 - place)
    return y, z


@nki.jit
def block_sums(x):
    blocks, rows, columns = x.shape
    out = nl.ndarray((rows, columns), dtype=x.dtype, buffer=nl.shared_hbm)
    tiles = nl.ndarray((blocks, nl.par_dim(rows), columns), dtype=x.dtype)
    total = nl.ndarray((rows, columns), dtype=x.dtype)
    for i in nl.affine_range(blocks):
        tiles[i] = nl.load(x[i])
    for i in nl.affine_range(blocks):
        total[...] = nl.loop_reduce(tiles[i], op=np.add, loop_indices=[i])
    nl.store(out, value=total)
    return out


@nki.jit
def crowded(x, w):
    """Keeps every tile of x until the end, and loads w for each of them again."""
    blocks, rows, columns = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tiles = nl.ndarray((blocks, nl.par_dim(rows), columns), dtype=x.dtype)
    for i in nl.affine_range(blocks):
        tiles[i] = nl.add(nl.load(x[i]), nl.load(w))
    for i in nl.affine_range(blocks):
        nl.store(out[i], value=nl.multiply(tiles[i], tiles[blocks - 1 - i]))
    return out


@nki.jit
def rows_beside_tiles(x, rows):
    """Rows of one partition that are read again and again, while whole tiles wait for the end."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    sums = nl.ndarray(rows.shape[1:], dtype=x.dtype, buffer=nl.shared_hbm)
    doubled = nl.ndarray((x.shape[0], nl.par_dim(128), x.shape[2]), dtype=x.dtype)
    for i in nl.affine_range(x.shape[0]):
        doubled[i] = nl.multiply(nl.load(x[i]), 2.0)
    total = nl.zeros(sums.shape, dtype=x.dtype)
    for i in nl.sequential_range(3):
        for k in nl.affine_range(rows.shape[0]):
            total += nl.multiply(nl.load(rows[k]), float(1 + i + k))
    nl.store(sums, value=total)
    for i in nl.affine_range(x.shape[0]):
        nl.store(out[i], value=doubled[i])
    return out, sums


@nki.jit
def causal_softmax(x):
    """Of rows that see the columns up to their own number."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    i_p, i_f = nl.mgrid[0:128, 0:128]
    for i in nl.affine_range(x.shape[1] // 128):
        columns = slice(i * 128, (i + 1) * 128)
        seen = nisa.affine_select(pred=(i_p >= i_f), on_true_tile=nl.load(x[:, columns]), on_false_value=-9984.0)
        total = nl.ndarray((128, 1), dtype=nl.float32)
        powers = nisa.activation(
            np.exp, seen, reduce_op=np.add, reduce_res=total, reduce_cmd=nisa.reduce_cmd.reset_reduce
        )
        nl.store(out[:, columns], value=powers / total)
    return out


@nki.jit
def transposed(x):
    out = nl.ndarray((x.shape[1], x.shape[0]), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((x.shape[1], x.shape[0]), dtype=x.dtype)
    tile[...] = nisa.nc_transpose(nl.load(x))
    nl.store(out, value=tile + nl.load_transpose2d(x))
    return out


@nki.jit
def layer_norm(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile, width, parts = nl.load(x), nl.tile_size.bn_stats_fmax, (x.shape[1] + 511) // 512
    told = nl.ndarray((x.shape[0], 6 * parts), dtype=nl.float32)
    i_p, i_f, i_t = (
        nl.arange(count)[index]
        for count, index in ((x.shape[0], (slice(None), None)), (width, (None, slice(None))), (6, (None, slice(None))))
    )
    for i in nl.affine_range(parts):
        told[i_p, 6 * i + i_t] = nisa.bn_stats(tile[i_p, width * i + i_f], mask=width * i + i_f < x.shape[1])
    found = nisa.bn_aggr(told)
    scale = nl.rsqrt(found[:, 1] + 1e-5)
    nl.store(out, value=nisa.tensor_scalar(tile, np.subtract, found[:, 0], op1=np.multiply, operand1=scale))
    return out


@nki.jit
def scan(a, b, start):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    found = nisa.tensor_tensor_scan(nl.load(a), nl.load(b), nl.load(start), np.multiply, np.add)
    nl.store(out, value=found)
    return out


@nki.jit
def twice(tile):
    """A part of another kernel, though it is decorated."""
    return tile + tile


@nki.jit
def whole_parts(x):
    down, up, inward = (nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm) for _ in range(3))
    tile = twice(nl.load(x))
    nl.store(down, value=nl.floor(tile))
    nl.store(up, value=nl.ceil(tile))
    nl.store(inward, value=nl.trunc(tile))
    return down, up, inward


@nki.jit
def placed(x):
    """Two tiles in turn at addresses of the kernel's."""
    blocks, rows, columns = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    place = nki.compiler.sbuf.mod_alloc(base_addr=1024, num_free_tiles=(2,))
    tiles = nl.ndarray((blocks, nl.par_dim(rows), columns), dtype=x.dtype, buffer=place)
    for i in nl.affine_range(blocks):
        tiles[i] = nl.load(x[i])
        tiles[i] += 1.0
        nl.store(out[i], value=tiles[i])
    return out


@nki.jit
def placed_by_a_counter(x):
    """Addresses that are counted up in a loop, whose body this dialect evaluates once."""
    blocks, rows, columns = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    at = 0
    for i in nl.sequential_range(blocks):
        tile = nl.ndarray((nl.par_dim(rows), columns), dtype=x.dtype, buffer=nki.compiler.sbuf.mod_alloc(base_addr=at))
        at += 64 << 10
        twice = nl.ndarray((nl.par_dim(rows), columns), dtype=x.dtype, buffer=nki.compiler.sbuf.mod_alloc(base_addr=at))
        at += 64 << 10
        tile[...] = nl.load(x[i])
        twice[...] = tile * 2.0
        nl.store(out[i], value=twice)
    return out


@nki.jit
def first_largest(x):
    """The position of the first largest number of each row; whole numbers without a sign are held on chip alone."""
    rows, columns = x.shape
    out = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(x)
    is_largest = nl.equal(tile, nl.max(tile, axis=1), dtype=nl.uint8)
    places = nisa.iota(nl.arange(columns)[None, :] + 0 * nl.arange(rows)[:, None], dtype=nl.uint32)
    chosen = nl.where(is_largest, places, columns, dtype=nl.uint32)
    nl.store(out, value=nl.min(chosen, axis=1, dtype=nl.uint32, keepdims=True))
    return out


@nki.jit
def nearest(x, columns):
    """Rows of x at the places [columns / 3 of each], whole numbers that are divided on the core."""
    out = nl.ndarray((columns, x.shape[1]), x.dtype, buffer=nl.shared_hbm)
    at = nl.arange(128)[:, None]
    thirds = nl.floor(nisa.iota(at, dtype=nl.int32) / 3, dtype=nl.int32)
    rows = nl.load(x[thirds, nl.arange(x.shape[1])[None, :]], mask=at < columns)
    nl.store(out[at, nl.arange(x.shape[1])[None, :]], value=rows, mask=at < columns)
    return out


@nki.jit
def by_turns(x):
    """Each tile goes from one engine to the other and back."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for at in nl.affine_range(x.shape[0]):
        tile = nl.load(x[at])
        halves = nl.exp(nl.exp(tile) * tile)
        nl.store(out[at], value=halves)
    return out


@nki.jit
def one_after_the_other(x):
    """Every tile needs the one before; each is stored twice, the second time over the first."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    total = nl.zeros((nl.par_dim(128), x.shape[2]), dtype=x.dtype)
    for at in nl.sequential_range(x.shape[0]):
        tile = nl.load(x[at])
        nl.store(out[at], value=tile)
        total[...] = nl.add(total, tile)
        nl.store(out[at], value=total)
    return out


@nki.jit
def all_banks(x, y):
    """Sums in all banks of PSUM at once, each from two products."""
    out = nl.ndarray((x.shape[0], 8, 128, 512), dtype=x.dtype, buffer=nl.shared_hbm)
    for at in nl.affine_range(x.shape[0]):
        sums = nl.zeros((8, nl.par_dim(128), 512), dtype=np.float32, buffer=nl.psum)
        for half in nl.affine_range(2):
            tile = nl.load(x[at, half])
            for bank in nl.affine_range(8):
                sums[bank] += nl.matmul(tile, nl.load(y[half, bank]), transpose_x=True)
        for bank in nl.affine_range(8):
            nl.store(out[at, bank], value=nl.copy(sums[bank]))
    return out


@nki.jit
def kept_apart(x):
    """Exponentials that are all made before the first is used, then by turns."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    powers = nl.ndarray((x.shape[0], nl.par_dim(128), x.shape[2]), dtype=x.dtype)
    for at in nl.affine_range(x.shape[0]):
        powers[at] = nl.exp(nl.negative(nl.load(x[at])))
    for at in nl.affine_range(x.shape[0]):
        nl.store(out[at], value=nl.exp(nl.multiply(nl.exp(powers[at]), powers[at])))
    return out


@nki.jit
def masked_search(x, columns):
    """The largest eight of the first columns of each row, and where they are."""
    rows = x.shape[0]
    values = nl.ndarray((rows, 8), dtype=x.dtype, buffer=nl.shared_hbm)
    places = nl.ndarray((rows, 8), dtype=nl.int32, buffer=nl.shared_hbm)
    i, j, eight = nl.arange(128)[:, None], nl.arange(x.shape[1])[None, :], nl.arange(8)[None, :]
    for block in nl.affine_range((rows + 127) // 128):
        is_row = block * 128 + i < rows
        tile = nl.load(x[block * 128 + i, j], mask=is_row)
        top = nisa.max8(tile, mask=is_row & (j < columns))
        nl.store(
            places[block * 128 + i, eight], nisa.nc_find_index8(tile, top, mask=is_row & (j < columns)), mask=is_row
        )
        nl.store(values[block * 128 + i, eight], top, mask=is_row)
    return values, places


@nki.jit
def masked_statistics(x):
    """Mean and variance of each row, from statistics of its halves."""
    rows, half = x.shape[0], x.shape[1] // 2
    out = nl.ndarray((rows, 2), dtype=x.dtype, buffer=nl.shared_hbm)
    i, j, two = nl.arange(128)[:, None], nl.arange(x.shape[1])[None, :], nl.arange(2)[None, :]
    for block in nl.affine_range((rows + 127) // 128):
        is_row = block * 128 + i < rows
        tile = nl.load(x[block * 128 + i, j], mask=is_row)
        parts = nl.ndarray((nl.par_dim(128), 2, 6), dtype=nl.float32)
        for part in nl.static_range(2):
            parts[:, part, :] = nisa.bn_stats(tile[:, nl.ds(part * half, half)], mask=is_row)
        nl.store(out[block * 128 + i, two], nisa.bn_aggr(parts, mask=is_row), mask=is_row)
    return out
