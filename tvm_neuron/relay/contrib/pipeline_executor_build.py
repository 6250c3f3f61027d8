"""`tvm.contrib.pipeline_executor_build`: modules joined by their inputs and outputs, each compiled on its own."""

from collections.abc import Callable
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any

import tvm

from tvm_neuron.errors import OptionError
from tvm_neuron.relay.build_module import build as relay_build
from tvm_neuron.relay.contrib.pipeline_executor import Connection, PipelineExecutorFactoryModule
from tvm_neuron.relay.infer import infer_types
from tvm_neuron.relay.ir.ty import TupleType

_KINDS = ("input", "output")


@dataclass(eq=False)
class Stage:
    """One module, and how it is built: what `pipe_config[mod]` gives."""

    mod: tvm.IRModule
    config: "PipelineConfig"
    target: Any = "neuron"
    target_host: Any = None
    params: Any = None
    dev: Any = None
    build_func: Callable[..., Any] | None = None
    fcompile: Any = None
    export_cc: Any = None
    cpu_affinity: str = ""
    name: str = ""
    types: dict[tuple[str, str], Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        main = infer_types(self.mod)["main"]
        self.types = {("input", str(param.name_hint)): param.ty for param in main.params}
        results = main.body.ty.fields if isinstance(main.body.ty, TupleType) else [main.body.ty]
        self.types |= {("output", str(number)): ty for number, ty in enumerate(results)}

    def __getitem__(self, kind: str) -> "Bindings":
        return Bindings(self.config, self, _checked(kind))


@dataclass(frozen=True)
class Bindings:
    """The inputs or the outputs of a stage, or of the pipeline if `stage` is None."""

    config: "PipelineConfig"
    stage: Stage | None
    kind: str

    def __getitem__(self, key: str | int) -> "Binding":
        known = {name: ty for (kind, name), ty in self.stage.types.items() if kind == self.kind} if self.stage else {}
        if self.stage is not None and str(key) not in known:
            raise OptionError(f"a stage of the pipeline has no {self.kind} '{key}', only {', '.join(known)}")
        return Binding(self.config, self.stage, self.kind, str(key), known.get(str(key)))


@dataclass(frozen=True)
class Binding:
    """One input or output; `connect` leads it to another."""

    config: "PipelineConfig"
    stage: Stage | None
    kind: str
    name: str
    ty: Any

    def connect(self, binding: "Binding") -> None:
        """What this gives becomes what the other takes.

        Raises OptionError: this gives nothing or the other takes nothing, their types differ, or it makes a circle.
        """
        gives = self.kind == ("output" if self.stage else "input")
        takes = binding.kind == ("input" if binding.stage else "output")
        if not gives or not takes:
            raise OptionError(f"{self} can't lead to {binding}: inputs of the pipeline and outputs of stages can, to "
                              "inputs of stages and outputs of the pipeline")  # fmt: skip
        if self.ty is not None and binding.ty is not None and self.ty != binding.ty:
            raise OptionError(f"{self} is {self.ty}, {binding} is {binding.ty}: they must be the same")
        self.config.add(self, binding)

    def __str__(self) -> str:
        whose = "the pipeline" if self.stage is None else "a stage"
        return f"{self.kind} '{self.name}' of {whose}"


class PipelineConfig:
    """Stages by their modules, and `"input"` and `"output"` of the whole."""

    def __init__(self) -> None:
        self._stages: dict[Any, Stage] = {}
        self._connections: list[tuple[Binding, Binding]] = []

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, tvm.IRModule):
            return self._stages.setdefault(key, Stage(key, self))
        return Bindings(self, None, _checked(key))

    def add(self, source: Binding, sink: Binding) -> None:
        """A connection, unless it makes a circle."""
        self._connections.append((source, sink))
        try:
            self.stages()
        except CycleError as error:
            self._connections.pop()
            what = "what a stage takes would depend on what it gives"
            raise OptionError(f"{source} can't lead to {sink}: {what}") from error

    def stages(self) -> list[Stage]:
        """The stages in the order in which they run, with names from `mod0` on."""
        after: dict[Stage, set[Stage]] = {stage: set() for stage in self._stages.values()}
        for source, sink in self._connections:
            if source.stage is not None and sink.stage is not None:
                after[sink.stage].add(source.stage)
        ordered = list(TopologicalSorter(after).static_order())
        for number, stage in enumerate(ordered):
            stage.name = f"mod{number}"
        return ordered

    def connections(self) -> list[Connection]:
        """All connections by the stages' numbers, -1 being the pipeline.

        Raises OptionError: an input of a stage comes from nowhere, or from two places.
        """
        numbers: dict[Any, int] = {stage: number for number, stage in enumerate(self.stages())}
        found = [
            Connection(numbers.get(a.stage, -1), a.name, numbers.get(b.stage, -1), b.name) for a, b in self._connections
        ]
        taken = [(each.sink, each.sink_name) for each in found]
        for stage, number in numbers.items():
            for kind, name in stage.types:
                is_given = name in (stage.params or {})
                if kind == "input" and taken.count((number, name)) != (0 if is_given else 1) and not is_given:
                    raise OptionError(f"input '{name}' of {stage.name} needs one connection, it has "
                                      f"{taken.count((number, name))}")  # fmt: skip
        return found

    def __str__(self) -> str:
        self.stages()
        inputs = [f"  |{a.name}: {b.stage.name}:{b.name}" for a, b in self._connections if not a.stage and b.stage]
        outputs = [f"  |output({b.name}) : {a.stage.name}.output({a.name})"
                   for a, b in self._connections if a.stage and not b.stage]  # fmt: skip
        between = [f"  |{a.stage.name}.output({a.name})-> {b.stage.name}.{b.name}"
                   for a, b in self._connections if a.stage and b.stage]  # fmt: skip
        return "\n".join(["Inputs", *inputs, "", "output", *outputs, "", "connections", *between, ""])


def build(pipe_configs: PipelineConfig) -> PipelineExecutorFactoryModule:
    """Compiles every stage, by its `build_func` or `relay.build`.

    Raises OptionError: an input is not connected; and what `relay.build` raises.
    """
    connections = pipe_configs.connections()
    libraries = []
    for stage in pipe_configs.stages():
        make = stage.build_func or relay_build
        libraries.append(make(stage.mod, stage.target, params=stage.params, target_host=stage.target_host))
    return PipelineExecutorFactoryModule(libraries, connections)


def _checked(kind: Any) -> str:
    if kind not in _KINDS:
        raise OptionError(f"{kind!r} is neither 'input' nor 'output', nor a module")
    return str(kind)
