"""Cut a module into Neuron subgraphs and the CPU rest."""

from dataclasses import dataclass, replace

import tvm
from tvm import relax
from tvm.relax.expr import _update_type

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.by_hand import kernel_name
from tvm_neuron.frontend.origin import bindings_of
from tvm_neuron.neff import Placement
from tvm_neuron.partition.constraints import IsConstant, Refusal, Verdict
from tvm_neuron.partition.coverage import placements
from tvm_neuron.partition.flatten import flatten
from tvm_neuron.partition.hide import Hidden
from tvm_neuron.partition.island import Surroundings, Weigh
from tvm_neuron.partition.lift import Lifted, lift_constants, lower_constants
from tvm_neuron.partition.naming import OutputNames
from tvm_neuron.partition.plan import CanSchedule, Plan, Where, make_plan
from tvm_neuron.partition.spans import Spans, SpansOf, with_spans
from tvm_neuron.partition.table import CODEGEN, NUMBER_ATTR, make_patterns


@dataclass(frozen=True)
class Partition:
    """`mod` holds `main` and one function `neuron_<i>` per subgraph; `placements` has a row per model operator."""

    mod: tvm.IRModule
    placements: tuple[Placement, ...]


def partition(mod: tvm.IRModule, can_schedule: CanSchedule | None = None, weigh: Weigh | None = None) -> Partition:
    """Cut `main` of a normalised module; see `frontend.normalize`.

    Each subgraph is a flat function (attributes `Codegen`, `global_symbol`, `neuron.outputs`) of calls that carry
    their origin; its weights are constants inside it. Values computed from constants alone go where they are used.
    What `weigh` finds too small for what carrying its tensors costs is moved to the CPU.
    """
    mod = relax.transform.ConvertToDataflow(min_size=1)(mod)
    if any(isinstance(binding.value, relax.If) for binding in bindings_of(mod["main"])):
        if any(kernel_name(binding.value) for binding in bindings_of(mod["main"])):
            raise ModelError(
                "the model has a branch that data decides (If) beside a kernel written by hand: take one out"
            )
        can_schedule = _refuse_branches
    lifted = lift_constants(mod["main"])
    plan = make_plan(lifted.func, lifted.constants, can_schedule)
    while any(plan.is_on_neuroncore(var) for var in plan.decisions):
        cut, members = _cut(mod, lifted, plan)
        moved = _too_small(cut, members, Surroundings(lifted.func, plan), weigh) if weigh is not None else {}
        if not moved:
            return Partition(cut, placements(lifted.func, plan))
        for var, reason in moved.items():
            plan.decisions[var] = replace(plan.decisions[var], where=Where.CPU, reason=reason)
    return Partition(mod, placements(lifted.func, plan))


def _too_small(
    cut: tvm.IRModule, members: dict[str, set[relax.Var]], surroundings: Surroundings, weigh: Weigh
) -> dict[relax.Var, str]:
    """The calls to move, and why."""
    moved: dict[relax.Var, str] = {}
    for symbol, calls in members.items():
        if any(kernel_name(binding.value) for binding in bindings_of(cut[symbol])):
            continue  # no CPU has it
        island = surroundings.island(calls)
        if island.is_fed_by_cpu or island.is_read_by_cpu:
            reason = weigh(cut[symbol], island)
            moved |= dict.fromkeys(calls, reason) if reason else {}
    return moved


def _cut(mod: tvm.IRModule, lifted: Lifted, plan: Plan) -> tuple[tvm.IRModule, dict[str, set[relax.Var]]]:
    """The module in parts as planned, and which calls each subgraph holds."""
    others = {var: mod[var] for var in mod.get_global_vars() if var.name_hint != "main"}
    names = {"main", *(var.name_hint for var in others)}
    mod = mod.clone()
    hidden = Hidden()
    mod["main"] = hidden.hide(lifted.func, plan)
    mod = relax.transform.FuseOpsByPattern(make_patterns(lifted.func, plan), bind_constants=False)(mod)
    mod = relax.transform.MergeCompositeFunctions()(mod)
    mod["main"] = hidden.show(mod["main"])
    for var, func in others.items():  # what only hidden calls use is gone by now
        mod[var] = func
    mod, members = _flatten_subgraphs(mod, plan, lifted.constants, names)
    mod["main"] = lower_constants(mod["main"], lifted.constants)
    return relax.transform.DeadCodeElimination(["main"])(mod), members


def _members(subgraph: relax.Function, plan: Plan) -> set[relax.Var]:
    """The variables of the calls whose composites the subgraph holds."""
    variables = list(plan.decisions)
    functions = [binding.value for binding in bindings_of(subgraph) if isinstance(binding.value, relax.Function)]
    return {variables[int(func.attrs[NUMBER_ATTR])] for func in functions}


def _result_spans(subgraph: relax.Function, plan: Plan) -> Spans:
    """What is known of the results of a subgraph, in their order."""
    variables, known = list(plan.decisions), Plan()
    for binding in bindings_of(subgraph):
        value = binding.value
        if isinstance(value, relax.Function):
            known.spans[binding.var] = plan.spans_of(variables[int(value.attrs[NUMBER_ATTR])])
        else:
            known.spans[binding.var] = known.spans_of(value.op if isinstance(value, relax.Call) else value)
    return known.spans_of(subgraph.body.body)


def _refuse_branches(_call: relax.Call, _is_constant: IsConstant, _spans_of: SpansOf) -> Verdict:
    """The passes that make the subgraphs do not know If."""
    return Refusal("The model has a branch that data decides (If), so all of it is compiled for the CPU")


def _flatten_subgraphs(
    mod: tvm.IRModule, plan: Plan, constants: dict[relax.Var, tvm.ir.GenericConst], names: set[str]
) -> tuple[tvm.IRModule, dict[str, set[relax.Var]]]:
    main = mod["main"]
    bindings = bindings_of(main)
    chains = {binding.var: binding.value for binding in bindings if binding.var in plan.constants}
    names_of = OutputNames(main)
    result = tvm.IRModule({var: mod[var] for var in mod.get_global_vars() if var.name_hint in names}, attrs=mod.attrs)
    blocks = []
    members: dict[str, set[relax.Var]] = {}
    known = Plan(spans=dict(plan.spans))
    for block in main.body.blocks:
        rewritten = []
        for binding in block.bindings:
            called = _called_subgraph(mod, binding)
            if called is not None:
                outputs = names_of.of_subgraph(binding.var)
                symbol = f"neuron_{len(members)}"
                members[symbol] = _members(called, plan)
                subgraph = flatten(called, binding.value.args, constants, chains, symbol, outputs)
                result[symbol] = with_spans(subgraph.func, [known.span_of(arg) for arg in subgraph.args])
                known.spans[binding.var] = _result_spans(called, plan)
                callee = result.get_global_var(symbol)
                _update_type(callee, subgraph.func.ty)
                call = relax.Call(callee, subgraph.args, ret_ty=binding.value.ty)
                binding = relax.VarBinding(binding.var, call)
            elif isinstance(binding.value, relax.TupleGetItem):
                known.spans[binding.var] = known.spans_of(binding.value)
            rewritten.append(binding)
        blocks.append(type(block)(rewritten))
    body = relax.BlockBuilder().normalize(relax.SeqExpr(blocks, main.body.body))
    result["main"] = relax.Function(main.params, body, main.ret_ty, main.is_pure, main.attrs, main.span)
    return result, members


def _called_subgraph(mod: tvm.IRModule, binding: relax.Binding) -> relax.Function | None:
    value = binding.value
    if not isinstance(value, relax.Call) or not isinstance(value.op, tvm.ir.GlobalVar):
        return None
    func = mod[value.op]
    is_subgraph = (
        isinstance(func, relax.Function) and func.attrs and str(func.attrs.get("Codegen", "")).startswith(CODEGEN)
    )
    return func if is_subgraph else None
