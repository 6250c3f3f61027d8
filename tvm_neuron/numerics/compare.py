"""compare: runs a model on the core and in float32, and finds where and why the results depart."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from glob import escape
from typing import Any

from numpy.typing import NDArray

from tvm_neuron.codegen.options import BuildOptions
from tvm_neuron.errors import CompileError, OptionError
from tvm_neuron.hw import load_device
from tvm_neuron.numerics import inputs as inputs_of
from tvm_neuron.numerics.comparison import Comparison
from tvm_neuron.numerics.emulate import Emulation, emulate, rounded
from tvm_neuron.numerics.findings import findings
from tvm_neuron.numerics.measure import Apart, apart, bound, is_explained
from tvm_neuron.numerics.model import Arrays, Model, Operator, load
from tvm_neuron.numerics.nonfinite import first_of
from tvm_neuron.numerics.on_core import EXACT, OnCore, Rounding, run_on_core
from tvm_neuron.numerics.rows import OperatorError, Output, WhatIf

WORTH_TRYING = 3


def compare(
    model: Any,
    inputs: Mapping[str, NDArray[Any]] | None = None,
    options: BuildOptions | None = None,
    *,
    seed: int = 0,
    shapes: Mapping[str, Sequence[int]] | None = None,
    values: Mapping[str, Any] | None = None,
    beginnings: int = 8,
    what_if: Sequence[Mapping[str, str]] | None = None,
    source: str = "",
) -> Comparison:
    """Compare a model, the path of an ONNX file or a ModelProto, on the core with onnxruntime in float32.

    `inputs` are arrays by name; without them, random ones are drawn from `seed`, of the model's shapes or of those in
    `shapes`. `values` are of inputs that shapes depend on, which are constants then. Up to `beginnings` operators are
    also looked at on the core as they are in the model: by programs compiled up to them. `what_if` are choices of
    `fp32_cast_of` to try; without it, the operators at which most error enters get the finest precision of the device,
    each and together. `source` says in the result where the inputs are from.

    Raises:
        OptionError: onnxruntime is not installed, or `options` leave out what is needed.
        InputError: the inputs don't fit the model.
        NeuronError: the model can't be read, compiled or run.
    """
    chosen = options or BuildOptions()
    if chosen.pipeline_cores > 1 or chosen.dynamic_batch:
        raise OptionError("a comparison is of one core and one batch: leave pipeline_cores and dynamic_batch out")
    if beginnings < 0:
        raise OptionError(f"beginnings is {beginnings}: it is a number of operators, at least 0")
    proto = load(model)
    inputs_of.bind(proto, values or {})
    sizes = {name: tuple(shape) for name, shape in (shapes or {}).items()}
    if inputs is None:
        given, source = inputs_of.drawn(proto, seed, sizes), f"random, seed {seed}"
    else:
        given, source = inputs_of.fitted(proto, inputs, sizes), source or "given"
    return _Work(Model(proto), given, chosen, source).done(beginnings, what_if)


class _Work:
    """One comparison under way."""

    def __init__(self, model: Model, inputs: Arrays, options: BuildOptions, source: str) -> None:
        self.model, self.inputs, self.source = model, inputs, source
        self.quiet = replace(options, on_stage=lambda _stage: None)  # the stages are those of the comparison
        self.tell = options.on_stage
        self.where: dict[str, str] = {}
        self.roundings: dict[str, Rounding] = {}
        self.core: OnCore

    def done(self, beginnings: int, what_if: Sequence[Mapping[str, str]] | None) -> Comparison:
        """All of it."""
        emulated = emulate(self.model, self.inputs, self._compiled)
        rows = [row for one in self.model.operators if (row := self._row(one, emulated)) is not None]
        outputs = tuple(self._outputs(emulated))
        rows = self._with_beginnings(rows, outputs, emulated, beginnings)
        nonfinite = tuple(first_of(self.model, emulated, rows, self.core.outputs))
        tried = tuple(self._tried(self._worth_trying(rows) if what_if is None else what_if, emulated))
        found = tuple(findings(outputs, rows, nonfinite, tried))
        return Comparison(self.source, outputs, tuple(rows), nonfinite, tried, found, self.core.report)

    def _compiled(self) -> Mapping[str, Rounding]:
        """Compiles and runs the whole, and gives its roundings."""
        self.tell("the whole model on the core")
        self.core = run_on_core(self.model.proto, self.inputs, self.quiet)
        self.where = {row.name: row.where for row in self.core.report.placement}
        self.roundings = self.core.roundings()
        self.tell("each operator in float32 and with the core's roundings")
        return self.roundings

    def _row(self, one: Operator, emulated: Emulation) -> OperatorError | None:
        """What is known of an operator by itself; None of what is known at compile time."""
        if self.model.constants.issuperset(one.makes):
            return None
        tensor, rounding = self.model.shown(one), self.roundings.get(one.name, Rounding())
        where = self.where.get(one.name, "compile time")
        exact = emulated.exact[tensor]
        alone = self._alone(one, emulated, rounding) if where == "neuroncore" else None
        explained = apart(emulated.alone[tensor], exact)
        return OperatorError(
            one.name, one.op, where, tensor, exact.shape, str(rounding), alone, explained, None,
            apart(emulated.grown[tensor], exact), alone is None or is_explained(alone, explained, rounding.coarsest),
        )  # fmt: skip

    def _alone(self, one: Operator, emulated: Emulation, rounding: Rounding) -> Apart | None:
        """The error of an operator on exact inputs; None if it can't be compiled apart from its neighbours."""
        self.tell(f"operator {one.name} alone")
        tensor = self.model.shown(one)
        part = self.model.alone(one, emulated.exact)
        given = {value.name: emulated.exact[value.name] for value in part.graph.input}
        try:
            found = run_on_core(part, given, self.quiet).outputs[tensor]
        except CompileError:
            return None
        return apart(rounded(found, rounding.kept), emulated.exact[tensor])

    def _outputs(self, emulated: Emulation) -> list[Output]:
        coarsest = self._coarsest(self.roundings)
        found = []
        for value in self.model.proto.graph.output:
            exact = emulated.exact[value.name]
            here, explained = apart(self.core.outputs[value.name], exact), apart(emulated.grown[value.name], exact)
            is_so = is_explained(here, explained, coarsest)
            found.append(Output(value.name, here, explained, bound(explained, coarsest), is_so))
        return found

    def _with_beginnings(
        self, rows: list[OperatorError], outputs: Sequence[Output], emulated: Emulation, most: int
    ) -> list[OperatorError]:
        """The rows with the core's error in the program compiled up to them, for as many as asked, evenly spread.

        If the result of one is not explained, also for those before it, until the first that is not.
        """
        found = list(rows)
        on_core = [at for at, row in enumerate(rows) if row.where == "neuroncore"]
        chosen = sorted({on_core[at * len(on_core) // most] for at in range(most)}) if on_core and most else []
        good = frozenset[str]()
        for at in chosen:
            found[at] = self._grown(found[at], emulated)
            if found[at].grown is not None and not self._fits(found[at]):
                break
            good |= self.model.needed_for(found[at].tensor)
        bad = [found[at].tensor for at in chosen if not self._fits(found[at])]
        bad += [output.name for output in outputs if not output.is_explained and most]
        suspects = self.model.needed_for(bad[0]) - good if bad else frozenset[str]()
        for at in on_core:
            if rows[at].name in suspects and found[at].grown is None:
                found[at] = self._grown(found[at], emulated)
                if not self._fits(found[at]):
                    break
        return [replace(row, is_explained_grown=self._fits(row)) for row in found]

    def _grown(self, row: OperatorError, emulated: Emulation) -> OperatorError:
        self.tell(f"the program up to operator {row.name}")
        part = self.model.beginning(row.tensor, emulated.exact)
        given = {value.name: self.inputs[value.name] for value in part.graph.input}
        found = run_on_core(part, given, self.quiet).outputs[row.tensor]
        return replace(row, grown=apart(found, emulated.exact[row.tensor]))

    def _fits(self, row: OperatorError) -> bool:
        """Whether the roundings until an operator explain its error in the program compiled up to it."""
        if row.grown is None:
            return True
        until = self.model.needed_for(row.tensor)
        coarsest = self._coarsest({name: rounding for name, rounding in self.roundings.items() if name in until})
        return is_explained(row.grown, row.grown_explained, coarsest)

    def _coarsest(self, roundings: Mapping[str, Rounding]) -> str:
        whole = Rounding()
        for each in roundings.values():
            whole = Rounding(whole.coarsest, each.coarsest)
        return whole.coarsest

    def _worth_trying(self, rows: Sequence[OperatorError]) -> list[dict[str, str]]:
        """The finest precision for the operators at which most error enters, each and together."""
        finest = "none" if load_device(self.quiet.device).fp32_matmul_passes else "matmult-fp16"
        worst = sorted((row for row in rows if row.alone and row.rounds != EXACT), key=_entering, reverse=True)
        each = [{escape(row.name): finest} for row in worst[:WORTH_TRYING] if _entering(row)]
        together = {name: mode for one in each for name, mode in one.items()}
        return [*each, together] if len(each) > 1 else each

    def _tried(self, choices: Sequence[Mapping[str, str]], emulated: Emulation) -> list[WhatIf]:
        found = []
        for choice in choices:
            self.tell(f"what if {', '.join(f'{name}={mode}' for name, mode in choice.items())}")
            changed = replace(self.quiet, fp32_cast_of={**self.quiet.fp32_cast_of, **choice})
            run = run_on_core(self.model.proto, self.inputs, changed)
            errors = [apart(array, emulated.exact[name]).error for name, array in run.outputs.items()]
            us = run.report.latency_us
            worst = max(errors, default=0.0)
            found.append(WhatIf(dict(choice), us, us - self.core.report.latency_us, worst))
        return found


def _entering(row: OperatorError) -> float:
    return row.alone.error if row.alone is not None and math.isfinite(row.alone.error) else 0.0


