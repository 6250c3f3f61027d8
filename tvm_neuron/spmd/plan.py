"""Plan: the steps of a program on several cores, as plain values that a library holds as JSON."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from tvm_neuron.neff import TensorInfo

Groups = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """How a tensor lies over the cores: in so many equal parts of each dimension, and which part each core has."""

    parts: tuple[int, ...]
    places: tuple[tuple[int, ...], ...]  # of each core, its part's number in each dimension

    @property
    def groups(self) -> Groups:
        """Cores that have all parts between them, each one: as many groups as there are copies of the tensor."""
        holders: dict[tuple[int, ...], list[int]] = {}
        for core, place in enumerate(self.places):
            holders.setdefault(place, []).append(core)
        return tuple(zip(*holders.values(), strict=True))


@dataclass(frozen=True, slots=True)
class Run:
    """Part `part` of the program, on each core; on all alike if `is_whole`, so that one result is that of all."""

    kind: ClassVar[str] = "run"
    part: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    is_whole: bool


@dataclass(frozen=True, slots=True)
class Cut:
    """Each core takes its part of a tensor that all have: nothing moves."""

    kind: ClassVar[str] = "cut"
    source: str
    target: str
    layout: Layout


@dataclass(frozen=True, slots=True)
class Join:
    """The whole tensor of the cores' parts; `is_needed` by cores, so that it has to come to all of them."""

    kind: ClassVar[str] = "join"
    source: str
    target: str
    layout: Layout
    is_needed: bool
    size_bytes: int  # of a part


@dataclass(frozen=True, slots=True)
class Exchange:
    """A collective operator: `operation` is one of its name in StableHLO.

    `groups` are cores that exchange among each other; of a collective_permute pairs of a sender and a receiver.
    `axis` is that of all_gather and reduce_scatter, of all_to_all where parts are joined, and `split` where they come
    from. `function` combines two values (add, maximum, ...). `size_bytes` are those that a core has before.
    """

    kind: ClassVar[str] = "exchange"
    name: str
    operation: str
    source: str
    target: str
    groups: Groups
    size_bytes: int
    function: str = ""
    axis: int = 0
    split: int = 0


Step = Run | Cut | Join | Exchange
_KINDS: Mapping[str, type[Any]] = {step.kind: step for step in (Run, Cut, Join, Exchange)}


@dataclass(frozen=True, slots=True)
class Plan:
    """`steps` on `cores` cores of `instance`; `results` are the tensors that `outputs` are, `core` the name of a
    tensor with each core's number, empty where the program does not ask for it."""

    cores: int
    instance: str
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    results: tuple[str, ...]
    steps: tuple[Step, ...]
    core: str = ""

    def to_json(self) -> str:
        """The plan as text."""
        found = asdict(self) | {"steps": [{"kind": step.kind} | asdict(step) for step in self.steps]}
        return json.dumps(found)

    @classmethod
    def from_json(cls, text: str) -> "Plan":
        """What `to_json` wrote."""
        found = json.loads(text)
        tensors = {key: tuple(_tensor(row) for row in found[key]) for key in ("inputs", "outputs")}
        steps = tuple(_step(row) for row in found["steps"])
        return cls(**found | tensors | {"results": tuple(found["results"]), "steps": steps})


def _tensor(row: Mapping[str, Any]) -> TensorInfo:
    return TensorInfo(**dict(row) | {"shape": tuple(row["shape"])})


def _step(row: Mapping[str, Any]) -> Step:
    values = {key: _as_tuples(value) for key, value in row.items() if key != "kind"}
    if "layout" in row:
        values["layout"] = Layout(**{key: _as_tuples(value) for key, value in row["layout"].items()})
    step: Step = _KINDS[row["kind"]](**values)
    return step


def _as_tuples(value: Any) -> Any:
    return tuple(map(_as_tuples, value)) if isinstance(value, Sequence) and not isinstance(value, str) else value
