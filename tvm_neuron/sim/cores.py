"""Cores: runs the data of a pipeline, one core after the other."""

from collections.abc import Mapping

from tvm_neuron.neff import Pipeline
from tvm_neuron.sim.machine import Array, Machine


class Cores:
    """A machine for each core of a pipeline; what one writes, later ones read by the same name.

    Raises:
        ProgramError: see `Machine`.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self.machines = [Machine(core.program, core.device, core.weights, core.prologue) for core in pipeline.cores]

    def run(self, inputs: Mapping[str, Array], mode: str = "nest", seed: int = 0) -> dict[str, Array]:
        """The model's outputs, in the dtypes of device memory.

        Raises:
            InputError, ProgramError: see `Machine.run`.
        """
        values = dict(inputs)
        for core, machine in zip(self.pipeline.cores, self.machines, strict=True):
            mine = {info.name: values[info.name] for info in core.inputs if info.name in values}
            values |= machine.run(mine, mode, seed)
        return {info.name: values[info.name] for info in self.pipeline.outputs}

    def input_dtypes(self) -> dict[str, str]:
        """The dtype in device memory of each of the model's inputs."""
        return {
            tensor.name: tensor.dtype
            for core in reversed(self.pipeline.cores)
            for tensor in core.program.tensors
            if tensor.kind == "input"
        }
