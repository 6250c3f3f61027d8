"""A library's program as a NEFF of its own."""

from dataclasses import replace
from typing import Any

from tvm_neuron import neff
from tvm_neuron.errors import CompileError
from tvm_neuron.runtime import manifest, neffs

_ADVICE = "write a library instead, --output FILE.so"


def whole_neff(library: Any, name: str) -> neff.Pipeline:
    """The NEFF, of one core or several, that does all the library does, under the model's name and with its placement.

    Raises:
        CompileError: the model became several programs, or none, or one with other inputs or outputs.
    """
    described = manifest(library)
    rows = tuple(neff.Placement(**row) for row in described["placement"])
    programs = list(neffs(library).values())
    parts = described["order"]
    if not parts:
        raise CompileError(f"the model leaves nothing to run, but a .neff is a Neuron program: {_ADVICE}")
    if len(programs) != 1 or len(parts) != 1:
        raise CompileError(f"the model became [{', '.join(parts)}], but a .neff is one Neuron program: {_ADVICE}")
    program = neff.read_pipeline(programs[0])
    for kind, infos in (("inputs", program.inputs), ("outputs", program.outputs)):
        has, wanted = [info.name for info in infos], [row["name"] for row in described[kind]]
        if has != wanted:
            raise CompileError(
                f"the model's {kind} are {', '.join(wanted)}, those that its Neuron program has [{', '.join(has)}] "
                f"(constants, unused inputs and tensors that are there already need none): {_ADVICE}"
            )
    first = replace(program.cores[0], placement=rows)
    if len(program.cores) == 1:
        first = replace(first, name=name)
    return replace(program, name=name, cores=(first, *program.cores[1:]))
