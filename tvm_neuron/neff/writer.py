"""write: a Neff as bytes; equal values give equal bytes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.hw.load import device_to_dict
from tvm_neuron.neff.container import ALIGNMENT, Pieces, pack
from tvm_neuron.neff.neff import Neff
from tvm_neuron.neff.streams import encode_stream
from tvm_neuron.neff.tables import encode_json, encode_origins, encode_tensors, infos_to_json, placement_to_json
from tvm_neuron.program.form import check_form
from tvm_neuron.program.streams import split

STREAM = "stream."
PROLOGUE = "prologue."


def write(neff: Neff, compress: bool = False) -> bytes:
    """The NEFF as one piece; `compress`: smaller, and slower to read.

    Raises:
        ProgramError: the program refers to what isn't there, or has a loop without instructions.
    """
    return b"".join(pieces(neff, compress))


def pieces(neff: Neff, compress: bool = False) -> list[bytes | memoryview]:
    """The same bytes in pieces, of which the weights are not copies."""
    check_form(neff.program)
    check_form(neff.loading)
    model = {
        "name": neff.name,
        "compiler": neff.compiler_version,
        "inputs": infos_to_json(neff.inputs),
        "outputs": infos_to_json(neff.outputs),
    }
    sections: dict[str, Pieces] = {
        "model": [encode_json(model)],
        "options": [encode_json(dict(neff.options))],
        "device": [encode_json(device_to_dict(neff.device))],
        "memory": [encode_json(dict(neff.memory))],
        "placement": [encode_json({"rows": placement_to_json(neff.placement)})],
        "origins": [encode_origins(neff.program.origins)],
        "tensors": [encode_tensors(neff.program.tensors)],
    }
    if neff.macs is not None:
        least = {} if neff.least_ps is None else {"least_ps": neff.least_ps}
        sections["work"] = [encode_json({"macs": neff.macs, **least, "repeats": dict(neff.repeats)})]
    for queue, stream in split(neff.program.body).items():
        sections[STREAM + queue] = [encode_stream(stream)]
    once = split(neff.prologue)
    for queue, stream in once.items():
        sections[PROLOGUE + queue] = [encode_stream(stream)]
    sections["weights"] = _weights(neff)
    return list(pack(sections, neff.compiler_version, {PROLOGUE + queue for queue in once}, compress))


def _weights(neff: Neff) -> Pieces:
    """Every weight in the order of the tensor table, each starting at a multiple of 64 bytes."""
    out: Pieces = []
    for tensor in neff.program.tensors:
        if tensor.kind == "weight":
            out += [raw(neff.weights[tensor.name]), bytes(-tensor.size_bytes % ALIGNMENT)]
    return out


def raw(array: NDArray[Any]) -> memoryview:
    """The array's bytes in row-major, little-endian order; a copy only where they don't lie so."""
    little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return little.reshape(-1).view(np.uint8).data
