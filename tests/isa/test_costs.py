"""The published instruction costs of NeuronCore-v2, row by row.

Source of the rows: AWS's documentation of NKI's instructions (`nki.isa`), where each has its cost in cycles of its
engine for N elements in each partition. The numbers here are written out or computed by the published formula, never
by the code under test.
"""

from dataclasses import replace
from itertools import product
from math import prod

import pytest

from tests.isa.examples import dram, integers, psum, sbuf
from tvm_neuron.hw import load_device
from tvm_neuron.isa import (
    ISA,
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

V2 = replace(load_device("inf2"), instruction_overhead_cycles=0)  # what every instruction takes besides has a test
_F, _F8 = "float32", "float8_e4m3"


def matmul(m: int, n: int, dtype: str = "bfloat16") -> Instruction:
    return Matmul(sbuf(128, m, dtype=dtype), sbuf(128, n, dtype=dtype), psum(m, n), ())


def two(left: Tile, right: Tile, op: str = "add") -> Instruction:
    return TensorTensor(sbuf(128, left.free_elems, dtype=left.dtype), left, right, op)


def choose(on_true: Tile, on_false: Tile) -> Instruction:
    return Select(sbuf(128, on_true.free_elems), sbuf(128, on_true.free_elems), on_true, on_false)


def fused(left: Tile, right: Tile, op: str) -> Instruction:
    return ScalarTensorTensor(sbuf(128, left.free_elems), left, right, 2.0, "multiply", op)


def column() -> Tile:
    return sbuf(128, 1, dtype=_F, at=8192)


def gather(n: int, step: int) -> Instruction:
    """Rows of n elements; with a step, each at a position of its own."""
    positions = Tile("sbuf", "int32", affine(0), 128, affine(0), ((step, n),))
    return DmaGather(sbuf(128, n), dram(9, 128, n), positions, 0)


ROWS: dict[str, list[tuple[Instruction, int]]] = {
    "nc_matmul: max(min(64, N_stationary), N_moving)": [
        (matmul(128, 512), 512), (matmul(128, 10), 64), (matmul(20, 10), 20), (matmul(1, 1), 1)],
    "nc_matmul, fp32: x4, and a quarter of N_stationary for each pass": [
        (matmul(128, 512, _F), 4 * (512 + 32)), (matmul(128, 10, _F), 4 * (64 + 32)),
        (matmul(6, 10, _F), 4 * (10 + 2))],
    "nc_matmul of two 8-bit floats at a time: as one product": [
        (MatmulPairs(sbuf(128, 2, m, dtype=_F8), sbuf(128, 2, n, dtype=_F8), psum(m, n), ()), cycles)
        for m, n, cycles in ((128, 512, 512), (128, 10, 64), (20, 10, 20))],
    "nc_transpose: max(P, min(64, F))": [
        (Transpose(psum(128, 128), sbuf(128, 128)), 128), (Transpose(psum(128, 8), sbuf(8, 128)), 64),
        (Transpose(psum(16, 8), sbuf(8, 16)), 16), (Transpose(psum(16, 8), sbuf(8, 16, dtype="float32")), 4 * 16)],
    "tensor_scalar: max(64, N)": [
        (TensorScalar(sbuf(4, n), sbuf(4, n), 1.0, 2.0, "add", op, 0), max(64, n))
        for n in (3, 64, 500) for op in ("bypass", "multiply")],
    "tensor_scalar on Scalar: max(64, N)": [
        (ActTensorScalar(sbuf(4, n), psum(4, n), 1.0, 2.0, "max", op, 0), max(64, n))
        for n in (3, 64, 500) for op in ("bypass", "min")],
    "tensor_copy: max(64, N)": [(TensorCopy(sbuf(128, n), psum(128, n)), max(64, n)) for n in (3, 64, 500)],
    "tensor_tensor, PSUM with SBUF: max(64, N)": [
        (two(psum(128, n), sbuf(128, n, dtype=_F), op), max(64, n)) for n in (3, 64, 500) for op in ("add", "max")],
    "tensor_tensor, all bf16 in SBUF, add/mul/sub: max(64, N)": [
        (two(sbuf(128, n), sbuf(128, n), op), max(64, n)) for n in (3, 500) for op in ("add", "multiply", "subtract")],
    "tensor_tensor, else: max(64, 2N)": [
        (two(sbuf(128, 500), sbuf(128, 500), "max"), 1000), (two(psum(128, 500), psum(128, 500)), 1000),
        (two(sbuf(128, 500, dtype=_F), sbuf(128, 500, dtype=_F)), 1000), (two(psum(128, 20), psum(128, 20)), 64)],
    "scalar_tensor_tensor: as tensor_tensor, the first operation is free": [
        (fused(psum(128, 500), sbuf(128, 500), "max"), 500), (fused(sbuf(128, 500), sbuf(128, 500), "add"), 500),
        (fused(sbuf(128, 500), sbuf(128, 500), "max"), 1000), (fused(psum(128, 3), psum(128, 3), "add"), 64)],
    "select, PSUM with SBUF: max(64, N)": [(choose(psum(128, n), sbuf(128, n)), max(64, n)) for n in (3, 64, 500)],
    "select, both in SBUF: max(64, 2N)": [(choose(sbuf(128, n), sbuf(128, n)), max(64, 2 * n)) for n in (3, 64, 500)],
    "tensor_scalar of bits: max(64, N)": [
        (TensorScalarBits(integers(128, n), integers(128, n), 1, "bitwise_or"), max(64, n)) for n in (3, 64, 500)],
    "tensor_tensor of bits: max(64, 2N)": [
        (TensorTensorBits(integers(128, n), integers(128, n), integers(128, n), "bitwise_or"), max(64, 2 * n))
        for n in (3, 64, 500)],
    "tensor_reduce: N": [
        (TensorReduce(sbuf(128, 1), sbuf(128, n, dtype=_F), "add", 1), n) for n in (3, 500)],
    "tensor_reduce, bf16 add/max: N/2": [
        (TensorReduce(sbuf(128, 1), sbuf(128, 500), op, 1), n) for op, n in (("add", 250), ("max", 250), ("min", 500))],
    "memset, 0 and 16 bits: max(64, N/2)": [(Memset(sbuf(128, n), 0.0), max(64, n // 2)) for n in (10, 500)],
    "memset, else: max(64, N)": [
        (Memset(sbuf(128, 500), 1.0), 500), (Memset(sbuf(128, 500, dtype=_F), 0.0), 500),
        (Memset(psum(128, 5), 0.0), 64)],
    "activation: max(64, N)": [
        (Activation(sbuf(128, n), psum(128, n), 1.0, 0.0, "exp"), max(64, n)) for n in (3, 64, 500)],
    "activation_reduce: max(64, N) + 64": [
        (ActivationReduce(sbuf(128, n), column(), psum(128, n), 1.0, 0.0, "exp"), max(64, n) + 64) for n in (3, 500)],
    "tensor_scalar_reduce: max(64, N) + 64": [
        (TensorScalarReduce(sbuf(128, n), column(), psum(128, n), 1.0, "add", "max", 0), max(64, n) + 64)
        for n in (3, 500)],
    "tensor_tensor_scan: max(64, 2N), wherever its sources lie": [
        (TensorTensorScan(sbuf(128, n), sbuf(128, n), source(128, n), 0.0, "multiply", "add", 0), max(64, 2 * n))
        for n in (3, 64, 500) for source in (sbuf, psum)],
    "reciprocal: published as 8N, which a published measurement contradicts (chips/*.json): 2N": [
        (Reciprocal(sbuf(128, n), sbuf(128, n)), max(64, 2 * n)) for n in (3, 500)],
    "bn_stats: max(64, N)": [
        (BnStats(sbuf(128, 6, dtype=_F), sbuf(128, n)), max(64, n)) for n in (3, 500)],
    "bn_aggr: max(64, 13N/3)": [
        (BnAggr(sbuf(128, 2, dtype=_F), sbuf(128, n, dtype=_F)), max(64, 13 * n // 3)) for n in (6, 48)],
    "max8, find_index8: N": [
        (Max8(sbuf(128, 8), sbuf(128, n)), n) for n in (8, 500)]
        + [(FindIndex8(integers(128, 8), sbuf(128, n), sbuf(128, 8)), n) for n in (8, 500)],
    "match_replace8, printed as min(64, N), which no other instruction has: max(64, N)": [
        (MatchReplace8(sbuf(128, n), integers(128, 8), sbuf(128, n), sbuf(128, 8), 0.0), max(64, n)) for n in (8, 500)],
    "iota, affine_select, gpsimd_memset: 150 + N": [
        (Iota(integers(128, n), (0, 1, 1)), 150 + n) for n in (8, 500)]
        + [(GpsimdMemset(sbuf(128, n), 1.0), 150 + n) for n in (8, 500)]
        + [(AffineSelect(sbuf(128, n), sbuf(128, n), 0.0, (0, 1, 1), "is_ge"), 150 + n) for n in (8, 500)],
    "tensor_tensor on GpSimd, as affine_select with two sources: 150 + 2N": [
        (GpsimdTensorTensor(*[integers(128, n)] * 3, "add"), 150 + 2 * n) for n in (8, 500)],
    "local_gather: 150 + n * e / C, C = ((28 + 4e) / 4e) / min(4 / bytes, e)": [
        (LocalGather(sbuf(128, 512), sbuf(128, 64), integers(128, 32), 1), 150 + 512 // 8),
        (LocalGather(sbuf(128, 512, dtype=_F), sbuf(128, 64, dtype=_F), integers(128, 32), 1), 150 + 512 // 8),
        (LocalGather(sbuf(128, 512, 2), sbuf(128, 64), integers(128, 32), 2), 150 - (-512 * 2 * 4 // 9))],
    "nc_transpose 32x32 (Vector): max(64, N)": [
        (PoolTranspose(sbuf(n, p), sbuf(p, n)), 64) for p in (1, 32) for n in (8, 32)],
    "stream_shuffle, range_select: max(64, N)": [
        (StreamShuffle(sbuf(128, n), sbuf(128, n), (0,) * 32), max(64, n)) for n in (8, 500)]
        + [(RangeSelect(sbuf(128, n), column(), sbuf(128, n), 0.0, 1.0, 0.0, 0.0, "is_ge", "is_lt"), max(64, n))
           for n in (8, 500)],
    "select_reduce, unpublished: as select, and 64 as other reductions": [
        (SelectReduce(sbuf(128, n), column(), sbuf(128, n), source(128, n), 0.0), max(64, times * n) + 64)
        for n in (8, 500) for source, times in ((psum, 1), (sbuf, 2))],
    "a step of 16 bytes or more halves the bandwidth": [
        (TensorCopy(sbuf(128, 500), Tile("sbuf", "bfloat16", affine(0), 128, affine(0), ((step, 500),))), cycles)
        for step, cycles in ((1, 500), (7, 500), (8, 1000), (100, 1000))],
    "dma: max(106 ns, bytes / rate) for each descriptor, one a partition, over 16 engines of 17 B/ns": [
        (DmaCopy(sbuf(128, n), dram(128, n), 0), -(-128 * max(106 * 17, 2 * n) // (16 * 17)))
        for n in (16, 256, 1024, 2048, 8192)],
    "dma within SBUF: the same, by the bytes of the side that has more": [
        (DmaCopy(sbuf(128, 8192, dtype=target), sbuf(128, 8192, dtype=source), 0), -(-128 * 8192 * size // (16 * 17)))
        for target, source, size in (
            ("bfloat16", "bfloat16", 2), (_F, _F, 4), (_F, "bfloat16", 4), ("bfloat16", _F, 4))],
    "dma with computed addresses: the same, a descriptor for each run of elements at one position": [
        (gather(n, 0), -(-128 * max(106 * 17, 2 * n) // (16 * 17))) for n in (16, 256, 1024, 2048, 8192)]
        + [(gather(n, 1), -(-128 * n * 106 // 16)) for n in (1, 16, 100)],
}  # fmt: skip
# Published, but of instructions that this ISA doesn't have: who adds one moves its row up.
ABSENT: set[str] = set()


@pytest.mark.parametrize("row", ROWS)
def test_row(row: str) -> None:
    for instruction, cycles in ROWS[row]:
        assert instruction.cost(V2).busy_cycles == cycles, str(instruction)


def test_computed_addresses_take_longer_to_start() -> None:
    """Dynamic addressing: max(600, N) cycles, those of GpSimd's 1.4 GHz."""
    extra = gather(64, 0).cost(V2).latency_cycles - V2.dma_start_ns
    assert extra == round(600 / 1.4)


def test_rows_far_apart_in_device_memory_take_longer() -> None:
    """Two published kernels: rows of 4 KiB and of 2 KiB, some 1 MB apart, took 372 and 353 ns of an engine each."""
    for row, step, at_least, at_most in (
        (1024, 229_376, 353, 372), (512, 262_144, 353, 372), (1024, 12_288, 0, 4096 / 17 + 1),
        (512, 512, 0, 2048 / 17 + 1), (16_384, 262_144, 0, 65_536 / 17 + 1), (49_152, 49_152, 0, 196_608 / 17 + 1),
    ):  # fmt: skip
        apart = DramTile(0, _F, affine(0), ((step, 128), (1, row)))
        for copy in (DmaCopy(sbuf(128, row, dtype=_F), apart, 0), DmaCopy(apart, sbuf(128, row, dtype=_F), 0)):
            assert at_least <= copy.cost(V2).busy_cycles * 16 / 128 <= at_most


def test_of_rows_in_pieces_each_first_one_is_far() -> None:
    device = replace(V2, dma_far_ns=1106, dma_open_places=3, dram_bytes_per_second=2**48)  # bytes take no time
    for dims, far in (
        (((10**6, 8), (256, 4), (1, 16)), 8), (((10**6, 8), (10**5, 4), (1, 16)), 32),
        (((400_000, 8), (1000, 400), (1, 9)), 0), (((1, 8), (10**6, 4)), 32),
    ):  # fmt: skip
        shape = tuple(count for _, count in dims)
        pieces = prod(shape[:-1]) if dims[-1][0] == 1 else prod(shape)
        busy = DmaCopy(sbuf(*shape, dtype=_F), DramTile(0, _F, affine(0), dims), 0).cost(device).busy_cycles
        assert busy == -(-(pieces * 106 + far * 1000) // 16)


@pytest.mark.parametrize("partitions", [1, 32, 128])
def test_cost_does_not_depend_on_how_many_lanes_work(partitions: int) -> None:
    copy = TensorCopy(sbuf(partitions, 300), sbuf(partitions, 300))
    assert copy.cost(V2).busy_cycles == 300


def test_every_instruction_has_a_row() -> None:
    assert {type(instruction) for row in ROWS.values() for instruction, _ in row} == set(ISA)
    assert not {row.partition(":")[0] for row in ABSENT} & {cls.mnemonic for cls in ISA}


def test_a_transfer_starts_late_and_counts_its_bytes() -> None:
    cost = DmaCopy(sbuf(128, 8192), dram(128, 8192), 0).cost(V2)
    assert cost.latency_cycles == 1300  # about 1.3 us from semaphore to start
    assert cost.dram_bytes == 128 * 8192 * 2


def test_a_result_is_there_a_hundred_cycles_later() -> None:
    """AWS: about 100 cycles when instructions depend on each other; those that don't hide it."""
    assert {i.cost(V2).latency_cycles for row in ROWS.values() for i, _ in row if i.engine != "dma"} == {100}


def test_every_instruction_of_vector_and_scalar_has_an_overhead_besides() -> None:
    """A published chain of dependent instructions of one element on Scalar takes 264 cycles each, within 5 %."""
    device = load_device("inf2")
    for instruction in (instruction for row in ROWS.values() for instruction, _ in row):
        more = instruction.cost(device).busy_cycles - instruction.cost(V2).busy_cycles
        assert more == (device.instruction_overhead_cycles if instruction.engine in ("act", "pool") else 0)
    one = Activation(sbuf(4, 1), sbuf(4, 1), 1.0, 0.0, "exp").cost(device)
    assert one.busy_cycles + one.latency_cycles == pytest.approx(264, rel=0.05)


def test_neuroncore_v3_transposes_in_a_mode_of_its_own() -> None:
    """Published of it: float32 twice as quick as on v2, where a transposition is a product with ones."""
    for name, dtype in product(("trn1", "trn2"), ("float32", "bfloat16")):
        wanted = {"float32": {"trn1": 512, "trn2": 256}, "bfloat16": {"trn1": 128, "trn2": 128}}[dtype][name]
        transpose = Transpose(psum(128, 128), sbuf(128, 128, dtype=dtype))
        assert transpose.cost(load_device(name)).busy_cycles == wanted


def test_what_is_narrow_goes_quicker_on_neuroncore_v3() -> None:
    """Published of its Vector engine: 4 times for copies and scaling, twice where apart or from PSUM, or for pairs."""
    device = replace(load_device("trn2"), instruction_overhead_cycles=0)
    apart = replace(sbuf(4, 800), dims=((2, 800),))
    narrow = replace(psum(4, 800), dtype="bfloat16")
    for instruction, cycles in (
        (TensorCopy(sbuf(4, 800), sbuf(4, 800)), 200),
        (TensorScalar(sbuf(4, 800), sbuf(4, 800), 1.0, 2.0, "add", "bypass", 0), 200),
        (TensorCopy(sbuf(4, 800), apart), 400),
        (TensorCopy(sbuf(4, 800), narrow), 400),
        (TensorCopy(narrow, narrow), 800),
        (TensorCopy(sbuf(4, 800), sbuf(4, 800, dtype=_F)), 800),
        (two(sbuf(128, 800), sbuf(128, 800), "add"), 400),
        (two(sbuf(128, 800), sbuf(128, 800), "max"), 800),
        (two(sbuf(128, 800, dtype=_F), sbuf(128, 800, dtype=_F)), 1600),
        (TensorCopy(sbuf(4, 80), sbuf(4, 80)), 64),
    ):
        assert instruction.cost(device).busy_cycles == cycles, instruction


def test_neuroncore_v3_transposes_from_dram_at_nine_tenths_of_the_rate() -> None:
    """AWS's documentation: up to 90 % for types of 2 and 4 bytes; NeuronCore-v2 moves element by element."""
    v3, copy = load_device("trn2"), DmaCopy(sbuf(128, 2048), dram(128, 2048), 0)
    across = DramTile(0, "bfloat16", affine(0), ((1, 128), (128, 2048)))
    turned = replace(copy, source=across)
    # a run is of the whole tensor, cut into descriptors of 64 KiB at most
    assert turned.cost(v3).busy_cycles == pytest.approx(128 * 2048 * 2 / (16 * 23) / 0.9, abs=2)
    assert turned.cost(V2).busy_cycles == -(-128 * 2048 * 106 // 16)
    bytes_alone = DmaCopy(sbuf(128, 2048, dtype="uint8"), replace(across, dtype="uint8"), 0)
    assert bytes_alone.cost(v3).busy_cycles == -(-128 * 2048 * 106 // 16)
