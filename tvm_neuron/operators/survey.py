"""survey: every sample model through the importer and the partition's decisions, gathered by operator."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from onnx import TensorProto
from tvm import relax
from tvm.relax.frontend.onnx.onnx_frontend import _get_convert_map

from tvm_neuron.build import BuildOptions
from tvm_neuron.codegen import byoc
from tvm_neuron.errors import NeuronError
from tvm_neuron.frontend import from_onnx, normalize
from tvm_neuron.frontend.origin import bindings_of
from tvm_neuron.operators.listing import Listing, Operator, Outcome
from tvm_neuron.operators.samples import Sample, samples
from tvm_neuron.partition.constraints import general_constraints
from tvm_neuron.partition.coverage import placements
from tvm_neuron.partition.lift import lift_constants
from tvm_neuron.partition.plan import CanSchedule, Plan, Where, make_plan


@dataclass(frozen=True)
class Found:
    """What became of one form of one operator."""

    op: str
    dtype: str
    where: str
    reason: str
    condition: str = ""
    example: str = ""


def survey(options: BuildOptions | None = None, tried: Iterable[Sample] | None = None) -> tuple[Listing, Listing]:
    """The listings of ONNX and of Relax, the latter from what the ONNX samples become."""
    options = options or BuildOptions()
    can_schedule = byoc.scheduler(options, {})
    in_onnx: list[Found] = []
    in_relax: list[Found] = []
    for sample in samples() if tried is None else tried:
        found, inside = _try(sample, can_schedule)
        in_onnx.append(found)
        in_relax += inside
    device = options.device.removeprefix("neuron/")
    return (
        Listing("ONNX", device, general_constraints(), _gather(in_onnx, {*_get_convert_map(), "If", "Constant"})),
        Listing("RELAX", device, general_constraints(), _gather(in_relax)),
    )


def _try(sample: Sample, can_schedule: CanSchedule) -> tuple[Found, list[Found]]:
    def found(where: str, reason: str) -> Found:
        return Found(sample.op, sample.dtype, where, reason, sample.condition, sample.attributes)

    try:
        mod, params = from_onnx(sample.model)
        mod = relax.transform.ConvertToDataflow(min_size=1)(normalize(mod, params))
        lifted = lift_constants(mod["main"])
        plan = make_plan(lifted.func, lifted.constants, can_schedule)
    except NeuronError as error:
        return found("refused", _general(str(error), sample)), []
    except Exception as error:  # of TVM itself; a build makes a CompileError of it
        last = next((line for line in reversed(str(error).splitlines()) if line.strip()), "")
        return found("refused", _general(f"TVM fails with {type(error).__name__}: {last}", sample)), []
    rows = placements(lifted.func, plan)
    wheres = {row.where for row in rows}
    where = next((place for place in ("cpu", "neuroncore") if place in wheres), "compile time")
    decisions = [decision for decision in plan.decisions.values() if decision.where is Where.CPU]
    reasons = dict.fromkeys(_general(decision.reason, sample) for decision in decisions)
    return found(where, "; ".join(reasons)), list(_relax_calls(lifted.func, plan))


def _relax_calls(main: relax.Function, plan: Plan) -> Iterator[Found]:
    for binding in bindings_of(main):
        decision = plan.decisions.get(binding.var)
        if decision is not None and isinstance(binding.value, relax.Call) and decision.where != "compile time":
            types = [arg.ty for arg in binding.value.args if isinstance(arg.ty, relax.TensorType)]
            dtype = str((types or [binding.var.ty])[0].dtype) if types else ""
            reason = re.sub(rf"; [\w.]+ has {dtype}(?=;|$)", "", decision.reason)
            yield Found(decision.op, dtype, decision.where.value, reason)


def _general(reason: str, sample: Sample) -> str:
    """The reason in one line, without the names of the sample's own tensors, node and dtype, which says it already."""
    node = sample.model.graph.node[0]
    theirs = TensorProto.DataType.Name(sample.model.graph.input[0].type.tensor_type.elem_type).lower()
    reason = re.sub(rf"; [\w.]+ has {sample.dtype}(?=;|$)", "", reason)
    reason = reason.replace(f"has dtype {theirs},", "has a dtype")
    for name in sorted({*node.input, *node.output, node.name} - {""}, key=len, reverse=True):
        reason = reason.replace(f"'{name}'", "'...'")
    return " ".join(reason.split())


def _gather(found: Iterable[Found], names: Iterable[str] = ()) -> tuple[Operator, ...]:
    by_op: dict[str, list[Found]] = defaultdict(list)
    for row in found:
        by_op[row.op].append(row)
    return tuple(Operator(op, _outcomes(by_op[op])) for op in sorted({*by_op, *names}))


def _outcomes(rows: list[Found]) -> tuple[Outcome, ...]:
    """One for each place, condition and reason. What is so without a condition need not be named with it."""
    freely = {(row.where, row.dtype, row.reason) for row in rows if not row.condition}
    kept = [row for row in rows if not row.condition or (row.where, row.dtype, row.reason) not in freely]
    groups: dict[tuple[str, str, str], list[Found]] = defaultdict(list)
    for row in kept:
        groups[row.where, row.condition, row.reason].append(row)
    order = {"neuroncore": 0, "compile time": 1, "cpu": 2, "refused": 3}
    return tuple(
        Outcome(
            where, tuple(sorted({row.dtype for row in group})), len(group), condition, reason,
            group[0].example if reason else "",
        )
        for (where, condition, reason), group in sorted(groups.items(), key=lambda item: (order[item[0][0]], item[0]))
    )  # fmt: skip
