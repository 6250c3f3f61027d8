"""Transfer: a tensor that moves between the host's memory and a NeuronCore's at each run of a subgraph."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tvm_neuron.neff import Pipeline

TO_CORE = "to the NeuronCore"
FROM_CORE = "from the NeuronCore"


@dataclass(frozen=True, slots=True)
class Transfer:
    """`bytes` are those in device memory: 64-bit integers travel as 32 bits. `link_us` is alone on the host's link."""

    subgraph: str
    tensor: str
    direction: str
    bytes: int
    link_us: float


def transfers(compiled: Iterable[Pipeline]) -> Iterator[Transfer]:
    """All inputs and outputs of subgraphs, in their order; what the cores of a pipeline pass on is not the host's."""
    for pipeline in compiled:
        for kind, infos, direction in (
            ("input", pipeline.inputs, TO_CORE),
            ("output", pipeline.outputs, FROM_CORE),
        ):
            tensors = {t.name: t for core in pipeline.cores for t in core.program.tensors if t.kind == kind}
            for info in infos:
                size = tensors[info.name].size_bytes
                per_us = pipeline.cores[0].device.host_bytes_per_second / 1e6
                yield Transfer(pipeline.name, info.name, direction, size, size / per_us)
