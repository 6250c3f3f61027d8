"""Kernels as Beta 2 and later versions write them."""

# mypy: ignore-errors
import nki
import nki.isa as nisa
import nki.language as nl


def loaded(source):
    tile = nl.ndarray(source.shape, dtype=source.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=source)
    return tile


@nki.jit
def product(a, b):
    out = nl.ndarray((a.shape[1], b.shape[1]), dtype=a.dtype, buffer=nl.shared_hbm)
    lefts = [loaded(a[k * 128 : (k + 1) * 128]) for k in range(a.shape[0] // 128)]
    for n in nl.affine_range(b.shape[1] // 512):
        columns = slice(n * 512, (n + 1) * 512)
        total = nl.ndarray((a.shape[1], 512), nl.float32, buffer=nl.psum)
        for k, left in enumerate(lefts):
            nisa.nc_matmul(total, left, loaded(b[k * 128 : (k + 1) * 128, columns]))
        found = nl.ndarray(total.shape, dtype=out.dtype, buffer=nl.sbuf)
        nisa.tensor_copy(dst=found, src=total, dtype=out.dtype)
        nisa.dma_copy(dst=out[:, columns], src=found)
    return out


@nki.jit
def convolution(x, w):
    """[O, H - 2, W - 2] of an image [C, H, W] and weights [O, C, 3, 3]: a product for each tap."""
    (channels, high, wide), outputs = x.shape, w.shape[0]
    out = nl.ndarray((outputs, high - 2, wide - 2), x.dtype, buffer=nl.shared_hbm)
    image, taps = loaded(x), nl.ndarray((channels, 9, outputs), x.dtype)
    for tap in range(9):
        nisa.dma_copy(dst=taps[:, tap], src=w.ap([[9, channels], [channels * 9, outputs]], offset=tap))
    total = nl.ndarray(out.shape, nl.float32, buffer=nl.psum)
    for tap in range(9):
        a, b = divmod(tap, 3)
        nisa.nc_matmul(total, taps[:, tap], image[:, a : a + high - 2, b : b + wide - 2])
    found = nl.ndarray(out.shape, x.dtype)
    nisa.tensor_copy(found, total)
    nisa.dma_copy(dst=out, src=found)
    return out


@nki.jit
def softmax(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = loaded(x)
    powers = nl.ndarray(x.shape, dtype=nl.float32)
    top, total = (nl.ndarray((x.shape[0], 1), dtype=nl.float32) for _ in range(2))
    nisa.tensor_reduce(top, nl.maximum, tile, 1, negate=True)
    nisa.activation(powers, nl.exp, tile, bias=top)
    nisa.tensor_reduce(total, nl.add, powers, 1)
    nisa.reciprocal(total, total)
    nisa.tensor_scalar(dst=tile, data=powers, op0=nl.multiply, operand0=total, engine=nisa.vector_engine)
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def by_hand(x, second, partition=0):
    """exp(x) + x of two tiles at addresses."""
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    a = nl.ndarray(x.shape, nl.float32, buffer=nl.sbuf, address=(0, 64))
    b = nl.ndarray(x.shape, nl.float32, buffer=nl.sbuf, address=(partition, second))
    nisa.dma_copy(dst=a, src=x)
    nisa.activation(b, nl.exp, a)
    nisa.tensor_tensor(b, a, b, op=nl.add)
    nisa.dma_copy(dst=out, src=b)
    return out


@nki.jit
def all_of_it(x):
    """What every core writes to the same place."""
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=loaded(x))
    return out


@nki.jit
def without_a_destination(x):
    nisa.activation(op=nl.exp, data=loaded(x))


@nki.jit
def searched(x, chosen, low):
    """What looks along a tile: the largest eight and where, without them, a triangle, places, a gather, a shuffle."""
    rows, columns = x.shape
    kinds = {"top": 8, "without": columns, "triangle": columns, "counted": columns, "kept": columns, "most": 1}
    kinds |= {"gathered": 16, "mixed": columns, "some": columns}
    outs = {kind: nl.ndarray((rows, size), nl.float32, buffer=nl.shared_hbm) for kind, size in kinds.items()}
    tiles = {kind: nl.ndarray((rows, size), nl.float32) for kind, size in kinds.items()}
    where = nl.ndarray((rows, 8), nl.uint32)
    found = nl.ndarray((rows, 8), nl.float32, buffer=nl.shared_hbm)
    data, index = loaded(x), loaded(chosen)
    nisa.max8(tiles["top"], data)
    nisa.nc_find_index8(where, data, tiles["top"])
    nisa.nc_match_replace8(tiles["without"], data, tiles["top"], imm=-1.0)
    nisa.affine_select(
        tiles["triangle"], pattern=[[-1, columns]], channel_multiplier=1, on_true_tile=data, on_false_value=-2.0,
        cmp_op=nl.greater, offset=3,
    )  # fmt: skip
    nisa.iota(tiles["counted"], [[2, columns]], offset=1, channel_multiplier=100)
    nisa.select_reduce(
        tiles["kept"], tiles["triangle"], on_true=data, on_false=-5.0, reduce_res=tiles["most"], reduce_op=nl.maximum
    )
    nisa.local_gather(tiles["gathered"], data, index, num_elem_per_idx=1)
    nisa.nc_stream_shuffle(tiles["mixed"], data, [31 - i for i in range(32)])
    is_positive = nl.ndarray((rows, columns), nl.uint8)
    nisa.tensor_scalar(is_positive, tiles["triangle"], nl.greater, 0.0)
    nisa.tensor_copy(tiles["some"], data)
    nisa.tensor_copy_predicated(tiles["some"], loaded(low), is_positive)
    for kind, tile in tiles.items():
        nisa.dma_copy(dst=outs[kind], src=tile)
    told = nl.ndarray((rows, 8), nl.float32)
    nisa.tensor_copy(told, where)
    nisa.dma_copy(dst=found, src=told)
    return (*outs.values(), found)


@nki.jit
def windowed(x, low, high):
    """Of each row what lies from `low` to before `high`, and the largest of it."""
    out, most = (nl.ndarray((x.shape[0], n), nl.float32, buffer=nl.shared_hbm) for n in (x.shape[1], 1))
    kept, top = nl.ndarray(x.shape, nl.float32), nl.ndarray((x.shape[0], 1), nl.float32)
    nisa.range_select(
        kept, on_true_tile=loaded(x), comp_op0=nl.greater_equal, comp_op1=nl.less, bound0=loaded(low),
        bound1=loaded(high), reduce_res=top, range_start=2.0, on_false_value=-9.0,
    )  # fmt: skip
    nisa.dma_copy(dst=out, src=kept)
    nisa.dma_copy(dst=most, src=top)
    return out, most
