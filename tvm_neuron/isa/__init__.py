"""The instruction set: one class an instruction; everything else about it is derived."""

from tvm_neuron.isa.act import Activation, ActivationReduce, ActTensorScalar
from tvm_neuron.isa.affine import Affine, affine
from tvm_neuron.isa.bits import TensorScalarBits, TensorTensorBits
from tvm_neuron.isa.cost import Cost
from tvm_neuron.isa.dma import DmaCopy, DmaGather
from tvm_neuron.isa.engines import QUEUES
from tvm_neuron.isa.gpsimd import AffineSelect, GpsimdMemset, GpsimdTensorTensor, Iota, LocalGather
from tvm_neuron.isa.instruction import Instruction, Wait
from tvm_neuron.isa.pe import Matmul, MatmulPairs, Transpose
from tvm_neuron.isa.pool import (
    Memset,
    Reciprocal,
    ScalarTensorTensor,
    Select,
    TensorCopy,
    TensorReduce,
    TensorScalar,
    TensorScalarReduce,
    TensorTensor,
)
from tvm_neuron.isa.ranges import PoolTranspose, RangeSelect, SelectReduce, StreamShuffle
from tvm_neuron.isa.scan import TensorTensorScan
from tvm_neuron.isa.search import FindIndex8, MatchReplace8, Max8
from tvm_neuron.isa.statistics import BnAggr, BnStats
from tvm_neuron.isa.tile import DramTile, Tile

ISA: tuple[type[Instruction], ...] = (
    Matmul,
    MatmulPairs,
    Transpose,
    Activation,
    ActivationReduce,
    ActTensorScalar,
    TensorTensor,
    TensorScalar,
    ScalarTensorTensor,
    TensorScalarReduce,
    TensorTensorScan,
    Reciprocal,
    BnStats,
    BnAggr,
    TensorReduce,
    TensorCopy,
    Memset,
    Select,
    TensorTensorBits,
    TensorScalarBits,
    SelectReduce,
    RangeSelect,
    StreamShuffle,
    PoolTranspose,
    Max8,
    FindIndex8,
    MatchReplace8,
    Iota,
    AffineSelect,
    LocalGather,
    GpsimdMemset,
    GpsimdTensorTensor,
    DmaCopy,
    DmaGather,
)
BY_OPCODE = {cls.opcode: cls for cls in ISA}
BY_MNEMONIC = {cls.mnemonic: cls for cls in ISA}
if len(BY_OPCODE) != len(ISA) or len(BY_MNEMONIC) != len(ISA):
    raise TypeError("two instructions share an opcode or a mnemonic")

__all__ = [
    "BY_MNEMONIC",
    "BY_OPCODE",
    "ISA",
    "QUEUES",
    "ActTensorScalar",
    "Activation",
    "ActivationReduce",
    "Affine",
    "AffineSelect",
    "BnAggr",
    "BnStats",
    "Cost",
    "DmaCopy",
    "DmaGather",
    "DramTile",
    "FindIndex8",
    "GpsimdMemset",
    "GpsimdTensorTensor",
    "Instruction",
    "Iota",
    "LocalGather",
    "MatchReplace8",
    "Matmul",
    "MatmulPairs",
    "Max8",
    "Memset",
    "PoolTranspose",
    "RangeSelect",
    "Reciprocal",
    "ScalarTensorTensor",
    "Select",
    "SelectReduce",
    "StreamShuffle",
    "TensorCopy",
    "TensorReduce",
    "TensorScalar",
    "TensorScalarBits",
    "TensorScalarReduce",
    "TensorTensor",
    "TensorTensorBits",
    "TensorTensorScan",
    "Tile",
    "Transpose",
    "Wait",
    "affine",
]
