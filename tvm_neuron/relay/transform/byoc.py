"""AnnotateTarget and MergeCompilerRegions: which operators another compiler is to have, and which of them together."""

from collections.abc import Callable, Sequence
from typing import Any

import tvm

from tvm_neuron.relay.ir.expr import Call, Function, Op, Tuple, TupleGetItem
from tvm_neuron.relay.ir.functor import ExprMutator
from tvm_neuron.relay.placement import NEURON, calls_on_core
from tvm_neuron.relay.transform.passes import attribute, function_pass_of, module_pass, on_functions
from tvm_neuron.relay.transform.regions import BEGIN, END, begin, end, is_mark, merged

IsTaken = Callable[[Call, str], bool]
"""Whether a compiler takes a call."""


def AnnotateTarget(targets: str | Sequence[str], include_non_call_ops: bool = True) -> tvm.transform.Pass:  # noqa: N802
    """Calls that a compiler takes, each a region: the first of `targets` whose attribute `target.<name>` says so.

    `neuron` takes what `relay.build` would run on the core, unless an attribute of the operator was registered for it.
    With `include_non_call_ops`, tuples and their fields go with what makes them.
    """
    names = [targets] if isinstance(targets, str) else list(map(str, targets))

    def run(mod: tvm.IRModule) -> tvm.IRModule:
        on_core = calls_on_core(mod) if NEURON in names else set()

        def is_taken(call: Call, name: str) -> bool:
            own = registered(call, name)
            return call in on_core if own is None and name == NEURON else bool(own is not None and own(call))

        return on_functions(mod, lambda func, _mod: _annotated(func, names, is_taken, include_non_call_ops))

    return module_pass("AnnotateTarget", run)


def registered(call: Call, compiler: str) -> Any:
    """What `register_op_attr("<operator>", "target.<compiler>")` was given for the operator of a call, or None."""
    name, key = str(call.op.name), f"target.{compiler}"
    if name not in tvm.ir.Op.list_op_names():
        return None
    op = tvm.ir.Op.get(name)
    return op.get_attr(key) if op.has_attr(key) else None


def _annotated(func: Function, names: list[str], is_taken: IsTaken, with_tuples: bool) -> Function:
    body = _Annotator(names, is_taken, with_tuples).visit(func.body)
    return Function(func.params, body, None, attrs=func.attrs, span=func.span)


class _Annotator(ExprMutator):
    def __init__(self, names: list[str], is_taken: IsTaken, with_tuples: bool) -> None:
        super().__init__()
        self._names, self._is_taken, self._with_tuples = names, is_taken, with_tuples

    def visit_call(self, call: Call) -> Any:
        """The call in a region of its own, if a compiler takes it."""
        new = super().visit_call(call)
        compiler = self._compiler_of(call)
        if compiler is None or is_mark(call, BEGIN) or is_mark(call, END):
            return new
        args = [begin(_with_type(arg, old), compiler) for arg, old in zip(new.args, call.args, strict=True)]
        made = Call(new.op, args, new.attrs, new.type_args, new.span, ty=call.ty)
        return end(made, compiler)

    def _compiler_of(self, call: Call) -> str | None:
        if isinstance(call.op, Op):
            return next((name for name in self._names if self._is_taken(call, name)), None)
        composite = attribute(call.op, "Composite") if isinstance(call.op, Function) else None
        owner = str(composite).partition(".")[0] if composite is not None else None
        return owner if owner in self._names else None

    def visit_tuple(self, tup: Tuple) -> Any:
        """The tuple in the region of its fields, if they are all of one compiler."""
        new = super().visit_tuple(tup)
        return self._with(new, tup, list(new.fields), lambda fields: Tuple(fields, tup.span, tup.ty))

    def visit_tuple_getitem(self, op: TupleGetItem) -> Any:
        """The field in the region of its tuple."""
        new = super().visit_tuple_getitem(op)
        return self._with(new, op, [new.tuple_value], lambda args: TupleGetItem(args[0], op.index, op.span, op.ty))

    def _with(self, new: Any, old: Any, parts: list[Any], make: Callable[[list[Any]], Any]) -> Any:
        owners = {str(part.attrs.compiler) if is_mark(part, END) else "" for part in parts}
        if not self._with_tuples or len(owners) != 1 or owners == {""}:
            return new
        (owner,) = owners
        return end(_with_type(make([begin(part, owner) for part in parts]), old), owner)

    def visit_function(self, fn: Function) -> Any:
        """A function that is called in place, as it is."""
        return fn


def _with_type(new: Any, old: Any) -> Any:
    """`new`, if it has a type; what a change left without one gets that of `old`."""
    if new.ty.same_as(old.ty) or not isinstance(new, Call | Tuple | TupleGetItem):
        return new
    match new:
        case Call():
            return Call(new.op, new.args, new.attrs, new.type_args, new.span, ty=old.ty)
        case Tuple():
            return Tuple(new.fields, new.span, old.ty)
    return TupleGetItem(new.tuple_value, new.index, new.span, old.ty)


def MergeCompilerRegions() -> tvm.transform.Pass:  # noqa: N802
    """Regions of one compiler that feed each other as one."""
    return function_pass_of("MergeCompilerRegions", lambda func, _mod: merged(func))
