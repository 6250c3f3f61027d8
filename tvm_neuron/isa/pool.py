"""The POOL (vector) engine: elementwise arithmetic, reductions along the free axes, copies and constants."""

import numpy as np

from tvm_neuron.errors import ProgramError
from tvm_neuron.hw import Device
from tvm_neuron.isa.cost import Cost
from tvm_neuron.isa.functions import ALU, ALU_NAMES, NEGATED, REDUCE_NAMES, reduced, with_scalars
from tvm_neuron.isa.instruction import Array, Instruction
from tvm_neuron.isa.limits import (
    copy_rate,
    elementwise_cycles,
    is_strided,
    need_column,
    need_same_shape,
    pair_rate,
    vector_cost,
)
from tvm_neuron.isa.operand import choice, reads, scalar, uint, writes
from tvm_neuron.isa.tile import MAX_FREE_DIMS, Tile


def two_source_factor(result: Tile, left: Tile, right: Tile, op: str) -> int:
    """1 where the sources come from different memories, or all is bf16 in SBUF and added or multiplied; else 2."""
    mixed = left.space != right.space
    plain = all((tile.space, tile.dtype) == ("sbuf", "bfloat16") for tile in (result, left, right))
    return 1 if mixed or (plain and op in ("add", "subtract", "multiply")) else 2


class TensorTensor(Instruction, opcode=0x30, engine="pool", mnemonic="tensor_tensor"):
    """result[P, *N] = left[P, *N] op right[P, *N]."""

    result: Tile = writes()
    left: Tile = reads()
    right: Tile = reads()
    op: str = choice(ALU_NAMES)

    def check(self, device: Device) -> None:
        need_same_shape("tensor_tensor", self.result, self.left, self.right)

    def compute(self, *sources: Array) -> Array:
        left, right = sources
        return ALU[self.op](left, right)

    def cost(self, device: Device) -> Cost:
        tiles = (self.result, self.left, self.right)
        factor, rate = two_source_factor(*tiles, self.op), pair_rate(device, *tiles)
        busy = elementwise_cycles(device, self.result.free_elems, *tiles, factor=factor, rate=rate)
        return vector_cost(device, busy)


class TensorScalar(Instruction, opcode=0x31, engine="pool", mnemonic="tensor_scalar"):
    """result[P, *N] = (source[P, *N] op0 scalar0) op1 scalar1; `reverse` bit i swaps the operands of op i."""

    result: Tile = writes()
    source: Tile = reads()
    scalar0: float | Tile = scalar()
    scalar1: float | Tile = scalar()
    op0: str = choice(ALU_NAMES)
    op1: str = choice(("bypass", *ALU_NAMES))
    reverse: int = uint(0, 3)

    def check(self, device: Device) -> None:
        need_same_shape("tensor_scalar", self.result, self.source)

    def compute(self, *sources: Array) -> Array:
        source, scalar0, scalar1 = sources
        return with_scalars(source, (scalar0, scalar1), (self.op0, self.op1), self.reverse)

    def cost(self, device: Device) -> Cost:
        rate = copy_rate(device, self.result, self.source)
        busy = elementwise_cycles(device, self.result.free_elems, self.result, self.source, rate=rate)
        return vector_cost(device, busy)


class ScalarTensorTensor(Instruction, opcode=0x32, engine="pool", mnemonic="scalar_tensor_tensor"):
    """result[P, *N] = (left[P, *N] op0 scalar0) op1 right[P, *N]."""

    result: Tile = writes()
    left: Tile = reads()
    right: Tile = reads()
    scalar0: float | Tile = scalar()
    op0: str = choice(ALU_NAMES)
    op1: str = choice(ALU_NAMES)

    def check(self, device: Device) -> None:
        need_same_shape("scalar_tensor_tensor", self.result, self.left, self.right)

    def compute(self, *sources: Array) -> Array:
        left, right, scalar0 = sources
        return ALU[self.op1](ALU[self.op0](left, scalar0), right)

    def cost(self, device: Device) -> Cost:
        factor = two_source_factor(self.result, self.left, self.right, self.op1)
        tiles = (self.result, self.left, self.right)
        busy = elementwise_cycles(device, self.result.free_elems, *tiles, factor=factor)
        return vector_cost(device, busy)


class TensorScalarReduce(Instruction, opcode=0x39, engine="pool", mnemonic="tensor_scalar_reduce"):
    """result[P, *N] = source[P, *N] op0 scalar0; total[P, 1] = reduce(op1, result) in float32 before it is rounded."""

    result: Tile = writes()
    total: Tile = writes()
    source: Tile = reads()
    scalar0: float | Tile = scalar()
    op0: str = choice(ALU_NAMES)
    op1: str = choice(REDUCE_NAMES)
    reverse: int = uint(0, 1)

    def check(self, device: Device) -> None:
        need_same_shape("tensor_scalar_reduce", self.result, self.source)
        need_column("tensor_scalar_reduce", self.total, self.result)

    def compute(self, *sources: Array) -> Array:
        source, scalar0 = sources
        return with_scalars(source, (scalar0, scalar0), (self.op0, "bypass"), self.reverse)

    def compute_for(self, operand: str, *sources: Array) -> Array:
        result = self.compute(*sources)
        return reduced(self.op1, result, len(self.result.dims))[..., None] if operand == "total" else result

    def cost(self, device: Device) -> Cost:
        busy = elementwise_cycles(device, self.result.free_elems, self.result, self.source)
        return vector_cost(device, busy + device.reduce_extra_cycles)


class Reciprocal(Instruction, opcode=0x3B, engine="pool", mnemonic="reciprocal"):
    """result[P, *N] = 1 / source[P, *N]."""

    result: Tile = writes()
    source: Tile = reads()

    def check(self, device: Device) -> None:
        need_same_shape("reciprocal", self.result, self.source)

    def compute(self, *sources: Array) -> Array:
        return np.float32(1) / sources[0]

    def cost(self, device: Device) -> Cost:
        factor, tiles = device.reciprocal_cycles, (self.result, self.source)
        return vector_cost(device, elementwise_cycles(device, self.result.free_elems, *tiles, factor=factor))


class TensorReduce(Instruction, opcode=0x33, engine="pool", mnemonic="tensor_reduce"):
    """result[P, *A] = reduce(op, source[P, *A, *B]) over the last `axes` free dimensions B; negated_op: times -1."""

    result: Tile = writes()
    source: Tile = reads()
    op: str = choice((*REDUCE_NAMES, *NEGATED))
    axes: int = uint(1, MAX_FREE_DIMS)

    def check(self, device: Device) -> None:
        kept = self.source.shape[: len(self.source.shape) - self.axes]
        if len(kept) < 1 or self.result.shape != (kept if len(kept) > 1 else (*kept, 1)):
            raise ProgramError(
                f"tensor_reduce: source {list(self.source.shape)} over its last {self.axes} dimensions does not give "
                f"{list(self.result.shape)}"
            )

    def compute(self, *sources: Array) -> Array:
        (source,) = sources
        op = NEGATED.get(self.op)
        result = reduced(self.op, source, self.axes) if op is None else -reduced(op, source, self.axes)
        return result[..., None] if len(self.source.dims) == self.axes else result

    def cost(self, device: Device) -> Cost:
        elems = self.source.free_elems
        halved = self.source.dtype == "bfloat16" and NEGATED.get(self.op, self.op) in ("add", "max")
        busy = (-(-elems // 2) if halved else elems) * (2 if is_strided(device, self.source) else 1)
        return vector_cost(device, busy)


class TensorCopy(Instruction, opcode=0x34, engine="pool", mnemonic="tensor_copy"):
    """result[P, *N] = source[P, *N], converted to the result's dtype; int32 and uint32 to the same bit for bit."""

    result: Tile = writes()
    source: Tile = reads()

    @property
    def takes_bits(self) -> bool:
        """Where float32, through which all others go without loss, has not all digits (public NKI documentation)."""
        return self.source.dtype == self.result.dtype and self.result.dtype in ("int32", "uint32")

    def check(self, device: Device) -> None:
        need_same_shape("tensor_copy", self.result, self.source)

    def compute(self, *sources: Array) -> Array:
        return sources[0]

    def cost(self, device: Device) -> Cost:
        rate = copy_rate(device, self.result, self.source)
        busy = elementwise_cycles(device, self.result.free_elems, self.result, self.source, rate=rate)
        return vector_cost(device, busy)


class Select(Instruction, opcode=0x36, engine="pool", mnemonic="select"):
    """result[P, *N] = on_true[P, *N] where predicate[P, *N] != 0, else on_false[P, *N]; bit for bit if of one dtype."""

    result: Tile = writes()
    predicate: Tile = reads()
    on_true: Tile = reads()
    on_false: Tile = reads()

    @property
    def takes_bits(self) -> bool:
        """As POOL's copies do: bit for bit where dtypes agree, else through float32 (public NKI documentation)."""
        return self.on_true.dtype == self.on_false.dtype == self.result.dtype

    def check(self, device: Device) -> None:
        need_same_shape("select", self.result, self.predicate, self.on_true, self.on_false)

    def compute(self, *sources: Array) -> Array:
        predicate, on_true, on_false = sources
        return np.where(predicate != 0, on_true, on_false)

    def cost(self, device: Device) -> Cost:
        factor = 1 if self.on_true.space != self.on_false.space else 2
        tiles = (self.result, self.predicate, self.on_true, self.on_false)
        busy = elementwise_cycles(device, self.result.free_elems, *tiles, factor=factor)
        return vector_cost(device, busy)


class Memset(Instruction, opcode=0x35, engine="pool", mnemonic="memset"):
    """result[P, *N] = value."""

    result: Tile = writes()
    value: float | Tile = scalar()

    def compute(self, *sources: Array) -> Array:
        (value,) = sources
        return np.broadcast_to(value, np.broadcast_shapes(np.shape(value), self.result.shape))

    def cost(self, device: Device) -> Cost:
        quick = self.value == 0.0 and self.result.dtype in ("bfloat16", "float16")
        elems = self.result.free_elems
        busy = elementwise_cycles(device, -(-elems // 2) if quick else elems, self.result)
        return vector_cost(device, busy)
