"""Matrix products, transpositions, and what brings rows to all partitions."""

from functools import partial
from typing import Any

from tvm_neuron.isa import Matmul, MatmulPairs, PoolTranspose, Transpose
from tvm_neuron.isa.dtypes import MATMUL_DTYPES
from tvm_neuron.nki.calls.operands import on_chip
from tvm_neuron.nki.calls.pointwise import in_sbuf
from tvm_neuron.nki.emission import Result
from tvm_neuron.nki.index import Mask
from tvm_neuron.nki.source import wrong
from tvm_neuron.nki.trace import current
from tvm_neuron.nki.view import View

_DOUBLE_ROW = ("double_row", "double_row_gen3")


def nc_matmul(
    stationary: Any, moving: Any, is_stationary_onezero: bool = False, is_moving_onezero: bool = False,
    is_transpose: bool = False, perf_mode: Any = None,
) -> Result:  # fmt: skip
    """stationary[K, M].T @ moving[K, *N] in float32; of [K, 2, M] and [K, 2, *N] in the mode `double_row`."""
    on_chip("nc_matmul", stationary, moving)
    if perf_mode not in (None, "none", *_DOUBLE_ROW):
        raise wrong(f"nc_matmul with perf_mode={perf_mode}; the model has none and double_row")
    paired = 1 if perf_mode in _DOUBLE_ROW else 0
    if stationary.ndim != 2 + paired or stationary.shape[: 1 + paired] != moving.shape[: 1 + paired]:
        shapes = "[K, 2, M] and [K, 2, *N]" if paired else "[K, M] and [K, *N]"
        raise wrong(f"nc_matmul of stationary {stationary} and moving {moving}; they are {shapes}")
    for view in (stationary, moving):
        if view.tensor.memory != "sbuf":
            raise wrong(f"nc_matmul reads {view} in PSUM; its operands lie in SBUF: copy it first")
    shape = (stationary.shape[-1], *moving.shape[1 + paired :])

    def put(is_first: bool, target: View, mask: Mask | None) -> None:
        build = MatmulPairs if paired else Matmul
        current().product(target.fitted(shape), stationary, moving, is_first, mask, build)

    return Result(shape, "float32", "psum", partial(put, True), partial(put, False))


def nc_transpose(data: Any, engine: Any = None) -> Result:
    """[F, P] of data [P, F], on the Tensor engine into PSUM; on Vector, up to [32, 32], if asked for or into SBUF."""
    on_chip("nc_transpose", data)
    if data.ndim != 2:
        raise wrong(f"a transposition of {data}; it takes [P, F]")
    shape = data.shape[::-1]

    def write(target: View, mask: Mask | None) -> None:
        trace = current()
        if mask is not None and mask.bounds(2):
            raise wrong("a transposition with a mask; slice its operand instead")
        is_vector = engine == "vector" or (engine in (None, "unknown") and target.tensor.memory == "sbuf")
        if not is_vector and data.tensor.memory != "sbuf":
            raise wrong(f"nc_transpose reads {data} in PSUM; the Tensor engine reads SBUF: copy it first")
        if not is_vector and not is_multiplied(data):
            raise wrong(
                f"nc_transpose of {data}, {data.tensor.dtype}, by the Tensor engine, which takes floats: use "
                "dma_transpose (Beta 1: nl.load_transpose2d), which moves any type, or Vector for up to [32, 32]"
            )
        if target.shape[0] != shape[0] and target.elems == data.elems:
            raise wrong(f"nc_transpose of {data} to {target}; it gives {list(shape)}")
        trace.row(PoolTranspose if is_vector else Transpose, [target.fitted(shape)], data)

    return Result(shape, data.tensor.dtype, "sbuf" if engine == "vector" else "psum", write)


def is_multiplied(data: View) -> bool:
    """Whether the Tensor engine takes elements of that type."""
    return data.tensor.dtype in ("float32", *MATMUL_DTYPES)


def matmul(x: Any, y: Any, transpose_x: bool = False) -> Result:
    """x @ y, x [M, K] (or [K, M] with transpose_x), y [K, N]."""
    on_chip("matmul", x, y)
    x, y = in_sbuf(x), in_sbuf(y)
    if not transpose_x:
        x = in_sbuf(turned(x))
    return nc_matmul(x, y)


def broadcast_to(x: View, shape: tuple[int, ...]) -> View:
    """x with axes of size 1 repeated; a row is brought to all partitions by the Tensor engine."""
    trace = current()
    trace.settle()
    wide = x.padded(len(shape))
    if x.tensor.memory != "hbm" and wide.shape[0] == 1 < shape[0] <= trace.device.partitions:
        trace.start(x)
        return trace.spread(wide, shape[0]).widened(shape)
    return wide.widened(shape)


def turned(tile: View) -> View:
    """The transposed tile, in PSUM."""
    trace = current()
    result = nc_transpose(tile)
    found = trace.tensor(result.shape, result.dtype, "psum")
    trace.do(result, found)
    return found


def partition_sum(data: View) -> Result:
    """[1, *N]: the sum over the partitions, a product with ones."""
    on_chip("tensor_partition_reduce", data)
    ones = current().filled((data.shape[0], 1), data.tensor.dtype, 1.0)
    return nc_matmul(ones, in_sbuf(data))
