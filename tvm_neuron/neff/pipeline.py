"""Pipeline: a compiled subgraph as the programs of one or several cores, which pass tensors on by their names.

In a file, the programs of several cores are sections of one container, each a whole NEFF.
"""

from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from tvm_neuron.errors import NeffError, ProgramError
from tvm_neuron.neff.container import Pieces, pack, read_header, unpack
from tvm_neuron.neff.neff import Neff, TensorInfo
from tvm_neuron.neff.reader import CORE, describe_errors, read
from tvm_neuron.neff.tables import decode_json, encode_json, infos_from_json, infos_to_json
from tvm_neuron.neff.writer import pieces
from tvm_neuron.program.verify import verify

_MODEL = "pipeline"
_MOST = 1 << 10  # cores on one program


@dataclass(frozen=True)
class Pipeline:
    """`inputs` and `outputs` are the model's, in its order; a core's inputs are those or outputs of cores before it.

    `replicas[i]` cores have the program `cores[i]` and take inputs in turn; without it, each program has one core.

    Raises:
        NeffError: there is no core, or a program has none; a core's input, or an output, comes from nowhere or from two
            places.
    """

    name: str
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    cores: tuple[Neff, ...]
    replicas: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.cores:
            raise NeffError(f"NEFF '{self.name}' has no core")
        if not self.replicas:
            object.__setattr__(self, "replicas", (1,) * len(self.cores))
        if len(self.replicas) != len(self.cores) or min(self.replicas) < 1:
            raise NeffError(f"NEFF '{self.name}': {len(self.cores)} programs on {list(self.replicas)} cores")
        known = [info.name for info in self.inputs]
        for number, core in enumerate(self.cores):
            for info in core.inputs:
                if info.name not in known:
                    raise NeffError(f"NEFF '{self.name}': nothing before core {number} makes its input '{info.name}'")
            known += [info.name for info in core.outputs]
        if len(set(known)) != len(known):
            doubled = next(name for name in known if known.count(name) > 1)
            raise NeffError(f"NEFF '{self.name}': tensor '{doubled}' comes from two places")
        missing = [info.name for info in self.outputs if info.name not in known]
        if missing:
            raise NeffError(f"NEFF '{self.name}': no core makes its output '{missing[0]}'")

    @classmethod
    def of(cls, core: Neff) -> "Pipeline":
        """The one program that is the whole."""
        return cls(core.name, core.inputs, core.outputs, (core,))

    @property
    def first_cores(self) -> tuple[int, ...]:
        """The number of the first core of each program."""
        return tuple(accumulate(self.replicas, initial=0))[:-1]

    @property
    def last_cores(self) -> tuple[int, ...]:
        """That of the last."""
        return tuple(end - 1 for end in accumulate(self.replicas))


def pipeline_pieces(pipeline: Pipeline, compress: bool = False) -> list[bytes | memoryview]:
    """A file's bytes in pieces: the NEFF of a single core, or one that holds those of all.

    Raises:
        ProgramError: see `write`.
    """
    if pipeline.replicas == (1,):
        return pieces(pipeline.cores[0], compress)
    model = {
        "name": pipeline.name,
        "inputs": infos_to_json(pipeline.inputs),
        "outputs": infos_to_json(pipeline.outputs),
        "replicas": list(pipeline.replicas),
    }
    sections: dict[str, Pieces] = {_MODEL: [encode_json(model)]}
    sections |= {f"{CORE}{number}": pieces(core, compress) for number, core in enumerate(pipeline.cores)}
    return list(pack(sections, pipeline.cores[0].compiler_version, needed=sections))


def core_files(data: bytes) -> list[bytes]:
    """The NEFF of each core in a file; cores that take inputs in turn have the same.

    Raises:
        NeffError: see `read_header`; a section is damaged.
    """
    files = _programs(data)
    counts = _model(data, len(files)).replicas if _is_pipeline(data) else (1,)
    return [file for file, count in zip(files, counts, strict=True) for _ in range(count)]


def core_names(data: bytes) -> list[str]:
    """The section of each program, "" for the one of a plain file.

    Raises:
        NeffError: see `read_header`.
    """
    names = [section.name for section in read_header(data).sections]
    return [name for name in names if name.startswith(CORE)] if _MODEL in names else [""]


def read_pipeline(data: bytes) -> Pipeline:
    """The pipeline in `data`, of one core or several.

    Raises:
        NeffError: see `read`; the cores don't fit together.
    """
    with describe_errors():
        cores = tuple(map(read, _programs(data)))
        if not _is_pipeline(data):
            return Pipeline.of(cores[0])
        model = _model(data, len(cores))
        return Pipeline(model.name, model.inputs, model.outputs, cores, model.replicas)


def verified(pipeline: Pipeline) -> Pipeline:
    """`pipeline`, each program of which keeps all rules of its device: it can be timed and run, whoever wrote the file.

    Raises:
        NeffError: a program breaks a rule.
    """
    with describe_errors():
        for core in pipeline.cores:
            try:
                verify(core.loading, core.device)
                verify(core.program, core.device)
            except ProgramError as error:
                raise NeffError(f"NEFF holds no sound program: {error}") from error
    return pipeline


class _Model(NamedTuple):
    name: str
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    replicas: tuple[int, ...]


def _model(data: bytes, programs: int) -> _Model:
    """What a file says of a pipeline of so many programs as a whole."""
    model = decode_json(unpack(data)[1][_MODEL], _MODEL)
    if set(model) != set(_Model._fields) or not isinstance(model["name"], str):
        raise NeffError(f"NEFF section '{_MODEL}' must name the model, its inputs, outputs and replicas")
    replicas = model["replicas"]
    if not isinstance(replicas, list) or not all(type(count) is int and 0 < count <= _MOST for count in replicas):
        raise NeffError(f"NEFF section '{_MODEL}': replicas must be a list of numbers from 1 to {_MOST}")
    if len(replicas) != programs:
        raise NeffError(f"NEFF section '{_MODEL}' tells the cores of {len(replicas)} programs; the file has {programs}")
    return _Model(model["name"], infos_from_json(model["inputs"]), infos_from_json(model["outputs"]), tuple(replicas))


def _is_pipeline(data: bytes) -> bool:
    return core_names(data) != [""]


def _programs(data: bytes) -> list[bytes]:
    """The NEFF of each program."""
    if not _is_pipeline(data):
        return [data]
    _, sections = unpack(data)
    return [bytes(sections[name]) for name in core_names(data)]
