"""A subgraph as the code generator reads it: one dataflow block of plain calls, constants and their folding inside."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import tvm
from tvm import relax

from tvm_neuron.frontend.origin import OUTPUTS_ATTR, Origin, bindings_of, with_origin
from tvm_neuron.partition.substitute import Values, substitute, used_vars
from tvm_neuron.partition.table import ORIGIN_ATTR


class _Names:
    """Names in use. TVM gives several variables one name, in unrolled networks thousands: each has its own count."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._used = dict.fromkeys(taken, 0)

    def unique(self, name: str) -> str:
        """`name`, numbered if it is taken; it is taken from now on."""
        found = name
        while found in self._used:
            self._used[name] += 1
            found = f"{name}_{self._used[name]}"
        self._used[found] = 0
        return found


@dataclass
class _Block:
    """The bindings being written, and what each variable of the old functions stands for."""

    bindings: list[relax.Binding] = field(default_factory=list)
    names: _Names = field(default_factory=_Names)

    def emit(self, value: relax.Expr, name: str) -> relax.Var:
        var = relax.DataflowVar(self.names.unique(name), value.ty)
        self.bindings.append(relax.VarBinding(var, value))
        return var

    def finish(self, result: relax.Expr) -> relax.SeqExpr:
        """The block returning `result`: a tuple is bound to one more variable, a call's variable is returned itself."""
        output = relax.Var("result", result.ty)
        is_bound = any(binding.var.same_as(result) for binding in self.bindings)
        bindings = [self._renamed(binding, result, output) for binding in self.bindings]
        if not is_bound:
            bindings.append(relax.VarBinding(output, result))
        return relax.BlockBuilder().normalize(relax.SeqExpr([relax.DataflowBlock(bindings)], output))

    @staticmethod
    def _renamed(binding: relax.Binding, old: relax.Expr, new: relax.Var) -> relax.Binding:
        if binding.var.same_as(old):
            return relax.VarBinding(new, binding.value)
        return relax.VarBinding(binding.var, substitute(binding.value, {old: new}))


@dataclass(frozen=True)
class Subgraph:
    """A flat function and, for each of its parameters, the variable of the caller to pass."""

    func: relax.Function
    args: tuple[relax.Var, ...]


def flatten(
    func: relax.Function,
    args: Sequence[relax.Expr],
    constants: dict[relax.Var, tvm.ir.GenericConst],
    chains: dict[relax.Var, relax.Expr],
    symbol: str,
    outputs: Sequence[str],
) -> Subgraph:
    """Inline the composites of `func`, called with `args`, into one function named `symbol`.

    `constants` are weights and `chains` the values computed from constants alone, both by variable of the caller:
    an argument found there is no parameter of the result, but a constant or the chain of calls that computes it.
    """
    block = _Block()
    values: Values = {}
    params: list[relax.Var] = []
    passed: list[relax.Var] = []
    names = _Names(outputs)
    sunk: Values = dict(constants)
    for param, arg in zip(func.params, args, strict=True):
        if arg in constants or arg in chains:
            values[param] = _sink(arg, chains, sunk, block)
        else:
            values[param] = var = relax.Var(names.unique(arg.name), param.ty)
            params.append(var)
            passed.append(arg)
    _inline(func, values, block)
    body = substitute(func.body.body, values)
    attrs = {"Codegen": "neuron", "global_symbol": symbol, OUTPUTS_ATTR: list(outputs)}
    flat = relax.Function(params, block.finish(body), body.ty).with_attrs(attrs)
    return Subgraph(flat, tuple(passed))


def _sink(arg: relax.Var, chains: dict[relax.Var, relax.Expr], sunk: Values, block: _Block) -> relax.Expr:
    """The value of `arg` inside the subgraph: emits the calls that compute it, once."""
    pending = [arg]
    while pending:
        var = pending[-1]
        if var in sunk:
            pending.pop()
            continue
        missing = [used for used in used_vars(chains[var]) if used not in sunk]
        pending.extend(missing)
        if not missing:
            sunk[var] = block.emit(substitute(chains[var], sunk), var.name)
            pending.pop()
    return sunk[arg]


def _inline(func: relax.Function, values: Values, block: _Block) -> None:
    """Emit the bindings of `func`, composites opened; `values` maps its variables to those of the block."""
    composites: dict[relax.Var, relax.Function] = {}
    for binding in bindings_of(func):
        value = binding.value
        if isinstance(value, relax.Function):
            composites[binding.var] = value
        elif isinstance(value, relax.Call) and value.op in composites:
            composite = composites[value.op]
            inner = {p: substitute(a, values) for p, a in zip(composite.params, value.args, strict=True)}
            values[binding.var] = _inline_composite(composite, inner, block, binding.var.name)
        else:
            values[binding.var] = _emit_fields(substitute(value, values), block, binding.var.name)


def _emit_fields(value: relax.Expr, block: _Block, name: str) -> relax.Expr:
    """`value`, bound to a variable if it is a field of a tuple: only variables may be operands."""
    return block.emit(value, name) if isinstance(value, relax.TupleGetItem) else value


def _inline_composite(composite: relax.Function, values: Values, block: _Block, name: str) -> relax.Expr:
    origin = Origin.decode(str(composite.attrs[ORIGIN_ATTR]))
    for binding in bindings_of(composite):
        value = substitute(binding.value, values)
        if isinstance(value, relax.Call):
            value = block.emit(with_origin(value, origin) if origin else value, name)
        value = _emit_fields(value, block, name)
        values[binding.var] = value
    return substitute(composite.body.body, values)
