"""describe: what a NEFF says about itself, as plain values; `neuron-cc info` prints it."""

from collections import Counter
from math import prod
from typing import Any

from tvm_neuron.hw.load import device_to_dict
from tvm_neuron.neff.container import Header
from tvm_neuron.neff.neff import Neff
from tvm_neuron.neff.tables import infos_to_json
from tvm_neuron.neff.writer import STREAM


def describe(neff: Neff, header: Header) -> dict[str, Any]:
    """Versions, options, device, inputs, outputs, memory, instructions and placement, ready for JSON."""
    written, run = Counter[str](), Counter[str]()
    for counts, instruction in neff.program.instructions():
        written[instruction.queue] += 1
        run[instruction.queue] += prod(counts)
    return {
        "name": neff.name,
        "neff_version": "{}.{}".format(*header.version),
        "compiler_version": neff.compiler_version,
        "options": dict(neff.options),
        "device": device_to_dict(neff.device),
        "inputs": infos_to_json(neff.inputs),
        "outputs": infos_to_json(neff.outputs),
        "memory_bytes": {**neff.memory, **_static_memory(neff, header)},
        "sections_bytes": {section.name: section.size for section in header.sections},
        "instructions": {queue: {"written": written[queue], "run": run[queue]} for queue in sorted(written)},
        "placement": dict(Counter(row.where for row in neff.placement)),
    }


def _static_memory(neff: Neff, header: Header) -> dict[str, int]:
    """Bytes that can be read off the file itself."""
    tensors = neff.program.tensors
    return {
        "inputs": sum(tensor.size_bytes for tensor in tensors if tensor.kind == "input"),
        "outputs": sum(tensor.size_bytes for tensor in tensors if tensor.kind == "output"),
        "instructions": sum(section.size for section in header.sections if section.name.startswith(STREAM)),
    }
