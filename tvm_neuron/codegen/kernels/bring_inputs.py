"""bring_inputs: inputs of which the PE array would read strips of short rows are brought to SBUF as a whole.

What reads device memory is cut into strips that fit. If these are of columns of an image, as where columns of a map
become rows, each row of each strip is a descriptor, and all of the image takes a few long ones.
"""

from collections.abc import Iterator
from dataclasses import replace

from tvm_neuron.allocation.memory_plan import strip_loads
from tvm_neuron.codegen.kernels.operands import read_by_array, with_copies
from tvm_neuron.codegen.overlap.work import work_of
from tvm_neuron.codegen.stage import Stage
from tvm_neuron.codegen.steps import Alternative
from tvm_neuron.codegen.zones import divide
from tvm_neuron.hw import Device
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.sim.clock import clock_hz, duration_ps

BRING_INPUTS = Alternative("bring_inputs", "kernels are final, so that what their strips would read is known")


def bring_inputs(stage: Stage, device: Device) -> Stage:
    """The stage, with such inputs converted on their way to copies, which the array reads."""
    readers = [kernel for kernel in stage.kernels if not stage.inputs.keys().isdisjoint(read_by_array(kernel))]
    if not readers:
        return stage
    capacity = divide(stage.kernels, stage.partition_of, device, 0, stage.tuning.weights_bytes(device)).tensors_bytes
    budget = capacity // stage.tuning.strip_share
    dearer = {(kernel, tensor) for kernel in readers for tensor in _dearer(kernel, stage, budget, device)}
    partition_of = dict(stage.partition_of)
    kernels = with_copies(stage.kernels, partition_of, lambda kernel, data: (kernel, data) in dearer, stage.dtype)
    copies = {tensor: tensor.dtype for tensor in partition_of.keys() - stage.partition_of.keys()}
    kernels = [replace(kernel, by_dma=True) if kernel.out in copies else kernel for kernel in kernels]
    return replace(stage, kernels=kernels, partition_of=partition_of, dtypes=stage.dtypes | copies)


def _dearer(kernel: Kernel, stage: Stage, budget: int, device: Device) -> Iterator[Tensor]:
    """The inputs that take longer in strips, where engines work on one while the next is on its way."""
    loads = strip_loads(kernel, stage.partition_of, stage.dtypes, stage.in_dram(), budget, device)
    work_ps, hz = max(work_of(kernel, device).values()), clock_hz(device, "dma")
    for tensor, cycles in loads.items():
        strips_ps, whole_ps = (duration_ps(each, hz) for each in cycles)
        if tensor in stage.inputs and tensor in read_by_array(kernel) and max(strips_ps, work_ps) > whole_ps + work_ps:
            yield tensor
