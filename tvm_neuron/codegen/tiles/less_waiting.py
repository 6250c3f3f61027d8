"""with_less_waiting: where tensors don't fit, less of what lies idle for long takes memory."""

from dataclasses import replace

from tvm_neuron.codegen.stage import Stage
from tvm_neuron.codegen.tiles.begin_late import begin_late
from tvm_neuron.codegen.tiles.run_in_tiles import division
from tvm_neuron.codegen.tiles.shrink_early import shrink_early
from tvm_neuron.codegen.tiles.usage import usage
from tvm_neuron.codegen.tiles.wait_in_dram import wait_in_dram
from tvm_neuron.hw import Device


def with_less_waiting(stage: Stage, device: Device) -> Stage:
    """The stage; if its tensors take more than there is for them, readers come early and concatenations begin late.

    What then waits for long does so in DRAM where weights need its memory more.
    """
    _, zones = division(stage, device)
    if max(usage(stage.kernels, stage.partition_of, stage.dtypes, stage.in_dram()).alive) <= zones.tensors_bytes:
        return stage
    partition_of, dtypes = dict(stage.partition_of), dict(stage.dtypes)
    kernels = begin_late(shrink_early(stage.kernels, partition_of, dtypes), partition_of, dtypes)
    return wait_in_dram(replace(stage, kernels=kernels, partition_of=partition_of, dtypes=dtypes), device)
