"""One valid instruction of every class for a given size: [partitions, elements] tiles, contiguous, in `dtype`."""

from collections.abc import Callable

from tvm_neuron.isa import (
    Activation,
    ActivationReduce,
    ActTensorScalar,
    AffineSelect,
    BnAggr,
    BnStats,
    DmaCopy,
    DmaGather,
    DramTile,
    FindIndex8,
    GpsimdMemset,
    GpsimdTensorTensor,
    Instruction,
    Iota,
    LocalGather,
    MatchReplace8,
    Matmul,
    MatmulPairs,
    Max8,
    Memset,
    PoolTranspose,
    RangeSelect,
    Reciprocal,
    ScalarTensorTensor,
    Select,
    SelectReduce,
    StreamShuffle,
    TensorCopy,
    TensorReduce,
    TensorScalar,
    TensorScalarBits,
    TensorScalarReduce,
    TensorTensor,
    TensorTensorBits,
    TensorTensorScan,
    Tile,
    Transpose,
    affine,
)


def sbuf(partitions: int, *shape: int, dtype: str = "bfloat16", at: int = 0) -> Tile:
    return _tile("sbuf", partitions, shape, dtype, at)


def integers(partitions: int, *shape: int) -> Tile:
    return sbuf(partitions, *shape, dtype="int32")


def psum(partitions: int, *shape: int, at: int = 0) -> Tile:
    return _tile("psum", partitions, shape, "float32", at)


def _tile(space: str, partitions: int, shape: tuple[int, ...], dtype: str, at: int) -> Tile:
    dims, step = [], 1
    for count in reversed(shape):
        dims.insert(0, (step, count))
        step *= count
    return Tile(space, dtype, affine(0), partitions, affine(at), tuple(dims))


def dram(*shape: int, dtype: str = "bfloat16") -> DramTile:
    tile = _tile("sbuf", 1, shape, dtype, 0)
    return DramTile(0, dtype, affine(0), tile.dims)


POSSIBLE = 5  # positions that the example of a gather chooses from

# By mnemonic: an instruction that works on p partitions with n elements in each.
EXAMPLES: dict[str, Callable[[int, int], Instruction]] = {
    "nc_matmul": lambda p, n: Matmul(sbuf(p, 32), sbuf(p, n), psum(32, n), ()),
    "nc_matmul_pairs": lambda p, n: MatmulPairs(
        sbuf(p, 2, 32, dtype="float8_e4m3"), sbuf(p, 2, n, dtype="float8_e5m2"), psum(32, n), ()
    ),
    "nc_transpose": lambda p, n: Transpose(psum(min(n, 64), p), sbuf(p, min(n, 64))),
    "activation": lambda p, n: Activation(sbuf(p, n), psum(p, n), 0.5, sbuf(p, 1), "relu"),
    "act_tensor_scalar": lambda p, n: ActTensorScalar(sbuf(p, n), psum(p, n), 0.0, sbuf(p, 1), "max", "min", 0),
    "tensor_tensor": lambda p, n: TensorTensor(sbuf(p, n), psum(p, n), sbuf(p, n), "add"),
    "tensor_scalar": lambda p, n: TensorScalar(sbuf(p, n), sbuf(p, n), sbuf(p, 1), 2.0, "multiply", "add", 0),
    "scalar_tensor_tensor": lambda p, n: ScalarTensorTensor(sbuf(p, n), sbuf(p, n), psum(p, n), 2.0, "multiply", "add"),
    "activation_reduce": lambda p, n: ActivationReduce(
        sbuf(p, n), sbuf(p, 1, at=4096, dtype="float32"), psum(p, n), 0.5, sbuf(p, 1), "exp"
    ),
    "tensor_scalar_reduce": lambda p, n: TensorScalarReduce(
        sbuf(p, n), sbuf(p, 1, at=4096, dtype="float32"), psum(p, n), sbuf(p, 1), "multiply", "max", 0
    ),
    "tensor_tensor_scan": lambda p, n: TensorTensorScan(
        sbuf(p, n), sbuf(p, n), psum(p, n), sbuf(p, 1), "multiply", "add", 0
    ),
    "reciprocal": lambda p, n: Reciprocal(sbuf(p, n), sbuf(p, n)),
    "bn_stats": lambda p, n: BnStats(sbuf(p, 6, dtype="float32", at=4096), sbuf(p, n)),
    "bn_aggr": lambda p, n: BnAggr(sbuf(p, 2, dtype="float32"), sbuf(p, n, 3, dtype="float32", at=4096)),
    "tensor_reduce": lambda p, n: TensorReduce(sbuf(p, n), sbuf(p, n, 4), "add", 1),
    "tensor_copy": lambda p, n: TensorCopy(sbuf(p, n), psum(p, n)),
    "select": lambda p, n: Select(sbuf(p, n), sbuf(p, n), sbuf(p, n), psum(p, n)),
    "tensor_tensor_bits": lambda p, n: TensorTensorBits(integers(p, n), integers(p, n), integers(p, n), "bitwise_and"),
    "tensor_scalar_bits": lambda p, n: TensorScalarBits(integers(p, n), integers(p, n), 3, "arith_shift_right"),
    "select_reduce": lambda p, n: SelectReduce(
        sbuf(p, n), sbuf(p, 1, at=4096, dtype="float32"), sbuf(p, n), psum(p, n), -1.0
    ),
    "range_select": lambda p, n: RangeSelect(
        sbuf(p, n), sbuf(p, 1, at=4096, dtype="float32"), psum(p, n), 2.0, sbuf(p, 1), 1.0, -9.0, "is_ge", "is_lt"
    ),
    "pool_transpose": lambda p, n: PoolTranspose(sbuf(min(n, 32), min(p, 32)), sbuf(min(p, 32), min(n, 32))),
    "stream_shuffle": lambda p, n: StreamShuffle(sbuf(p, n), sbuf(p, n), (0,) * 32),
    "max8": lambda p, n: Max8(sbuf(p, 8), sbuf(p, n, 8)),
    "find_index8": lambda p, n: FindIndex8(integers(p, 8), sbuf(p, n), sbuf(p, 8)),
    "match_replace8": lambda p, n: MatchReplace8(sbuf(p, n), integers(p, 8), sbuf(p, n), sbuf(p, 8), -9.0),
    "iota": lambda p, n: Iota(integers(p, n), (5, -2, 3)),
    "affine_select": lambda p, n: AffineSelect(sbuf(p, n), sbuf(p, n), -9.0, (1, 1, -1), "is_ge"),
    "local_gather": lambda p, n: LocalGather(sbuf(p, n), sbuf(p, POSSIBLE), integers(p, n), 1),
    "memset": lambda p, n: Memset(sbuf(p, n), 0.0),
    "gpsimd_memset": lambda p, n: GpsimdMemset(sbuf(p, n), 0.0),
    "gpsimd_tensor_tensor": lambda p, n: GpsimdTensorTensor(sbuf(p, n), sbuf(p, n), sbuf(p, n), "add"),
    "dma_copy": lambda p, n: DmaCopy(sbuf(p, n), dram(p, n), 0),
    "dma_gather": lambda p, n: DmaGather(sbuf(p, n), dram(POSSIBLE, p, n), sbuf(p, n, dtype="int32"), 0),
}
