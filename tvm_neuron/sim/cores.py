"""Cores: runs the data of a pipeline, one core after the other."""

from collections.abc import Mapping

from tvm_neuron.neff import Pipeline
from tvm_neuron.program import DramTensor
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

    @property
    def inputs(self) -> dict[str, DramTensor]:
        """The model's inputs as they lie in device memory; all cores that read one see it alike."""
        names = {info.name for info in self.pipeline.inputs}
        return {
            tensor.name: tensor
            for core in self.pipeline.cores
            for tensor in core.program.tensors
            if tensor.kind == "input" and tensor.name in names
        }
