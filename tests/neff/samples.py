"""NEFFs for the tests: random ones, and a way to damage a file without its checksums noticing."""

import struct
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from random import Random

import numpy as np

from tests.program.strategies import random_program, random_weights
from tvm_neuron.hw import CHIPS, load_device
from tvm_neuron.neff import Neff, Placement, TensorInfo
from tvm_neuron.neff.container import MINOR, Pieces, pack, unpack
from tvm_neuron.program import parse_program


def random_neff(rng: Random) -> Neff:
    """Any NEFF; its program is nonsense."""
    program = random_program(rng)
    infos = {
        kind: tuple(
            TensorInfo(t.name, t.shape, rng.choice((t.dtype, "int64"))) for t in program.tensors if t.kind == kind
        )
        for kind in ("input", "output")
    }
    return Neff(
        name=rng.choice(("", "tvmgen_default_neuron_main_0", "Ä\n")),
        program=program,
        device=load_device(rng.choice(CHIPS)),
        weights=random_weights(program, rng),
        inputs=infos["input"],
        outputs=infos["output"],
        options={"fp32_cast": "all", "level": 2, "nested": {"deep": [1, None, 2.5]}},
        compiler_version="0.1.0",
        placement=(Placement("conv1", "Conv", "neuroncore", ""), Placement("nms", "NonZero", "cpu", "data-dependent")),
        macs=1 << 40,
        repeats={t.name: 2 for t in program.tensors if t.kind == "weight" and rng.random() < 0.5},
        memory={"weights": 7, "activations": 8, "spill": 0, "sbuf_peak": 9},
    )


def reseal(data: bytes, needed: Sequence[str] = (), minor: int = MINOR, **changes: bytes | None) -> bytes:
    """The container with some sections replaced, added or (None) left out, and every checksum right again.

    Sections that were needed still are, and those of `needed`; it is compressed if it was.
    """
    header, sections = unpack(data)
    contents: dict[str, bytes | None] = {name: bytes(view) for name, view in sections.items()}
    contents |= {name.replace("__", "."): content for name, content in changes.items()}
    kept: dict[str, Pieces] = {name: [content] for name, content in contents.items() if content is not None}
    needed = [*needed, *(section.name for section in header.sections if section.is_needed)]
    is_compressed = any(section.is_compressed for section in header.sections)
    packed = b"".join(pack(kept, header.compiler_version, needed, is_compressed))
    size = int.from_bytes(packed[12:16], "little")
    return sealed(bytearray(packed[:10] + struct.pack("<H", minor) + packed[12:size])) + packed[size:]


def sealed(head: bytearray) -> bytes:
    """A header with its checksum made right."""
    head[48:80] = sha256(head[:48] + head[80:]).digest()
    return bytes(head)


def add_relu(name: str = "add_relu") -> Neff:
    """y = relu(x + w): a NEFF that runs."""
    program = parse_program((Path(__file__).parents[1] / "programs" / "add_relu.txt").read_text())
    return Neff(
        name=name,
        program=program,
        device=load_device("inf1"),
        weights={"w": np.arange(32, dtype=np.float32).reshape(4, 8) - 16},
        inputs=(TensorInfo("x", (4, 8), "float32"),),
        outputs=(TensorInfo("y", (4, 8), "float32"),),
        options={"fp32_cast": "all"},
        compiler_version="0.1.0",
        placement=(
            Placement("sum/add", "Add", "neuroncore", ""),
            Placement("sum/relu", "Relu", "neuroncore", ""),
        ),
        memory={"weights": 128, "activations": 512, "spill": 0, "sbuf_peak": 16384},
    )
