"""Stage: the kernels that one core runs, and what crosses its border."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tvm_neuron.codegen.tuning import USUAL, Tuning
from tvm_neuron.isa.dtypes import device_dtype
from tvm_neuron.neff import TensorInfo
from tvm_neuron.program import Origin
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import PARTITIONS


@dataclass(frozen=True, eq=False)
class Stage:
    """`inputs` and `outputs` are the tensors that come from outside and leave, as the NEFF tells of them.

    `spilled` ones are kept in DRAM by plan, as long rows. `images` cross the border as SBUF has them: [128, chunks of
    the partition dimension, the others], one long row for each partition. `asked_macs`: see `work`.
    `kept` outputs are in SBUF, too. With `chunks_apart`, instructions cover several chunks of channels only where that
    is clearly less work.
    """

    name: str
    kernels: list[Kernel]
    partition_of: dict[Tensor, int]
    dtypes: dict[Tensor, str]
    inputs: dict[Tensor, TensorInfo]
    outputs: dict[Tensor, TensorInfo]
    tuning: Tuning = USUAL
    spilled: frozenset[Tensor] = frozenset()
    images: frozenset[Tensor] = frozenset()
    kept: frozenset[Tensor] = frozenset()
    chunks_apart: bool = False
    asked_macs: Mapping[Origin, int] = field(default_factory=dict)

    def in_dram(self) -> set[Tensor]:
        """The tensors that can only lie in DRAM."""
        every = {tensor for kernel in self.kernels for tensor in kernel.tensors}
        return {tensor for tensor in every if tensor.kind != "temp" or tensor in self.spilled} - self.kept

    def dtype(self, tensor: Tensor) -> str:
        """A tensor's dtype in device memory."""
        return self.dtypes.get(tensor, device_dtype(tensor.dtype))

    def image_shape(self, tensor: Tensor) -> tuple[int, int] | None:
        """(partitions, elements of each) of a tensor whose partition dimension is of several whole chunks."""
        extent = tensor.shape[self.partition_of[tensor]] if tensor.shape else 1
        if extent <= PARTITIONS or extent % PARTITIONS or tensor.is_spread:
            return None
        return PARTITIONS, tensor.elems // PARTITIONS

    def dram_order(self, tensor: Tensor) -> list[int]:
        """Its dimensions as they lie in DRAM: as the model has them, or by partitions first, so that rows are long."""
        dims = list(range(len(tensor.shape)))
        if tensor.kind not in ("input", "output"):
            dims.sort(key=lambda d: (d != self.partition_of[tensor], d))
        return dims
