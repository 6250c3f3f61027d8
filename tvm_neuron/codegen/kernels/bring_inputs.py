"""bring_inputs: inputs of which the PE array would read strips of short rows are brought to SBUF as a whole.

What reads device memory is cut into strips that fit. If these are of columns of an image, as where columns of a map
become rows, each row of each strip is a descriptor, and all of the image takes a few long ones.
"""

from collections.abc import Iterator
from dataclasses import replace

from tvm_neuron.allocation.memory_plan import strip_loads
from tvm_neuron.codegen.kernels.operands import elementwise_copy, reading
from tvm_neuron.codegen.overlap.work import work_of
from tvm_neuron.codegen.stage import Stage
from tvm_neuron.codegen.steps import Alternative
from tvm_neuron.codegen.zones import divide
from tvm_neuron.hw import Device
from tvm_neuron.schedule.kernel import Contraction, Kernel, Operand, Product, Transposition
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.sim.clock import clock_hz, duration_ps

BRING_INPUTS = Alternative("bring_inputs", "kernels are final, so that what their strips would read is known")


def bring_inputs(stage: Stage, device: Device) -> Stage:
    """The stage, with such inputs converted on their way to copies, which the array reads."""
    readers = [kernel for kernel in stage.kernels if not stage.inputs.keys().isdisjoint(_read(kernel))]
    if not readers:
        return stage
    capacity = divide(stage.kernels, stage.partition_of, device, 0, stage.tuning.weights_bytes(device)).tensors_bytes
    budget = capacity // stage.tuning.strip_share
    dearer = {kernel: list(_dearer(kernel, stage, budget, device)) for kernel in readers}
    partition_of, copies = dict(stage.partition_of), dict[tuple[Tensor, str], Tensor]()
    kernels: list[Kernel] = []
    for kernel in stage.kernels:
        for tensor in dearer.get(kernel, ()):
            dtype = stage.dtype(kernel.out) if isinstance(kernel.root, Transposition) else _operand_dtype(kernel)
            if (tensor, dtype) not in copies:
                copy = copies[tensor, dtype] = Tensor(f"{tensor.name}.{dtype}", tensor.shape, dtype)
                partition_of[copy] = dim = partition_of[tensor]
                kernels.append(replace(elementwise_copy(kernel, tensor, copy, dim), by_dma=True))
            kernel = _reading(kernel, tensor, copies[tensor, dtype])
        kernels.append(kernel)
    dtypes = stage.dtypes | {copy: copy.dtype for copy in copies.values()}
    return replace(stage, kernels=kernels, partition_of=partition_of, dtypes=dtypes)


def _read(kernel: Kernel) -> tuple[Tensor, ...]:
    """What the array reads."""
    return (kernel.root.source.tensor,) if isinstance(kernel.root, Transposition) else kernel.multiplied()


def _operand_dtype(kernel: Kernel) -> str:
    assert isinstance(kernel.root, Contraction | Product)
    return kernel.root.dtype


def _reading(kernel: Kernel, tensor: Tensor, copy: Tensor) -> Kernel:
    """The kernel with the array reading the copy."""
    root = kernel.root
    if isinstance(root, Product):
        return replace(kernel, root=reading(root, tensor, copy))
    if isinstance(root, Transposition):
        return replace(kernel, root=replace(root, source=Operand(copy, root.source.maps)))
    assert isinstance(root, Contraction)
    return replace(kernel, root=replace(root, data=copy))


def _dearer(kernel: Kernel, stage: Stage, budget: int, device: Device) -> Iterator[Tensor]:
    """The inputs that take longer in strips, where engines work on one while the next is on its way."""
    loads = strip_loads(kernel, stage.partition_of, stage.dtypes, stage.in_dram(), budget, device)
    work_ps, hz = max(work_of(kernel, device).values()), clock_hz(device, "dma")
    for tensor, cycles in loads.items():
        strips_ps, whole_ps = (duration_ps(each, hz) for each in cycles)
        if tensor in stage.inputs and tensor in _read(kernel) and max(strips_ps, work_ps) > whole_ps + work_ps:
            yield tensor
