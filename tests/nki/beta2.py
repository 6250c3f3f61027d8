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
