"""The thread from the model to the instruction: every call carries the model operator it came from.

The carrier is the span of a `relax` call: `SourceName("<name>\\x1f<op type>")`. Spans survive BindParams,
CanonicalizeBindings and the decompositions of TVM for the calls these passes keep; `retag` restores the others.
"""

from collections.abc import Callable
from dataclasses import dataclass

import tvm
from tvm import relax

_SEPARATOR = "\x1f"

OPERATORS_ATTR = "neuron.operators"
"""Attribute of `main`: every operator of the model, in its order, as `Origin.encode()` strings."""

OUTPUTS_ATTR = "neuron.outputs"
"""Attribute of `main`: the model's own names of its outputs."""


@dataclass(frozen=True)
class Origin:
    """A model operator: its name in the model and its type there (`Conv`, or `nn.conv2d` for a Relax model)."""

    name: str
    op: str

    def __str__(self) -> str:
        return f"{self.name} ({self.op})"

    def encode(self) -> str:
        """`<name>\\x1f<op type>`, the form in which spans and attributes hold it."""
        return f"{self.name}{_SEPARATOR}{self.op}"

    @staticmethod
    def decode(text: str) -> "Origin | None":
        """The inverse of `encode`; None for any other text, such as the path of a script."""
        name, separator, op = text.partition(_SEPARATOR)
        return Origin(name, op) if separator else None


def origin_of(expr: relax.Expr) -> Origin | None:
    """The origin that `expr` (a call) carries, or None."""
    span = getattr(expr, "span", None)
    source = getattr(span, "source_name", None)
    return Origin.decode(source.name) if source is not None else None


def with_origin(call: relax.Call | relax.If, origin: Origin) -> relax.Call | relax.If:
    """The same call (or branch), carrying `origin`."""
    span = tvm.ir.Span(tvm.ir.SourceName(origin.encode()), 0, 0, 0, 0)
    if isinstance(call, relax.If):
        return relax.If(call.cond, call.true_branch, call.false_branch, span)
    return relax.Call(call.op, call.args, call.attrs, call.ty_args, span, ret_ty=call.ty)


def rewrite_bindings(func: relax.Function, rewrite: Callable[[relax.Binding], relax.Binding]) -> relax.Function:
    """`func` with each binding of its outermost blocks replaced; types must not change."""
    return with_blocks(func, [type(b)([rewrite(binding) for binding in b.bindings]) for b in func.body.blocks])


def with_blocks(func: relax.Function, blocks: list[relax.BindingBlock]) -> relax.Function:
    """`func` with its outermost blocks replaced; its signature and result stay."""
    body = relax.BlockBuilder().normalize(relax.SeqExpr(blocks, func.body.body))
    return relax.Function(func.params, body, func.ret_ty, func.is_pure, func.attrs, func.span)


def bindings_of(func: relax.Function) -> list[relax.Binding]:
    """The bindings of the outermost blocks of `func`, in order."""
    return [binding for block in func.body.blocks for binding in block.bindings]


def retag(func: relax.Function) -> relax.Function:
    """Give every call of `func` an origin: its own, else that of the next call that has one, else its own name.

    A pass that replaces a call emits the new bindings before the one it replaces, so "next" is the replaced one
    where an importer set origins. Calls of a hand-written Relax function are named after their variable.
    """
    bindings = bindings_of(func)
    found = _origins_by_position(bindings)

    def rewrite(binding: relax.Binding) -> relax.Binding:
        call = binding.value if isinstance(binding, relax.VarBinding) else None
        if not isinstance(call, relax.Call | relax.If) or origin_of(call) is not None:
            return binding
        return relax.VarBinding(binding.var, with_origin(call, found[binding.var]))

    return rewrite_bindings(func, rewrite)


def tag_natively(func: relax.Function) -> relax.Function:
    """Origins for a Relax function that no importer of ours made: operator name and variable name."""

    def rewrite(binding: relax.Binding) -> relax.Binding:
        call = binding.value if isinstance(binding, relax.VarBinding) else None
        if not isinstance(call, relax.Call | relax.If) or origin_of(call) is not None:
            return binding
        return relax.VarBinding(binding.var, with_origin(call, Origin(binding.var.name, op_name(call))))

    return rewrite_bindings(func, rewrite)


def op_name(call: relax.Call | relax.If) -> str:
    """The name of what `call` calls, without the `relax.` in front: `nn.conv2d`."""
    if isinstance(call, relax.If):
        return "if"
    name = getattr(call.op, "name", None) or getattr(call.op, "name_hint", None) or "call"
    return str(name).removeprefix("relax.")


def _origins_by_position(bindings: list[relax.Binding]) -> dict[relax.Var, Origin]:
    """For each binding the origin of the nearest call at or after it, else of the nearest before it."""
    origins: dict[relax.Var, Origin] = {}
    following: Origin | None = None
    for binding in reversed(bindings):
        following = origin_of(binding.value) or following
        if following is not None:
            origins[binding.var] = following
    last: Origin | None = None
    for binding in bindings:
        last = origins.get(binding.var, last)
        if binding.var not in origins:
            origins[binding.var] = last or Origin(binding.var.name, "call")
    return origins
