"""loops_as_functions: loops whose end only a run tells, as functions of the virtual machine.

It has no loops, and a function that calls itself would need its stack as often as there are rounds. So a function runs
one round, the next one up to two of them, the next up to four, and so on: each calls the one before, and again while
the condition holds. Its stack is as deep as the logarithm of the rounds.
"""

from collections.abc import Sequence

import tvm
from tvm import relax

from tvm_neuron.frontend.loops import body_of, is_loop
from tvm_neuron.frontend.normalize import normalize
from tvm_neuron.frontend.origin import rewrite_bindings

_DOUBLINGS = 48
"""More rounds than any machine runs in a year."""


@tvm.transform.module_pass(opt_level=0, name="LoopsAsFunctions")
def loops_as_functions(mod: tvm.IRModule, _context: tvm.transform.PassContext) -> tvm.IRModule:
    """The module with a function for each loop in place of the operator."""
    builder = relax.BlockBuilder(mod)
    for var, func in mod.functions_items():
        if isinstance(func, relax.Function) and isinstance(func.body, relax.SeqExpr):
            builder.update_func(var, _without_loops(builder, func))
    return builder.get()


def _without_loops(builder: relax.BlockBuilder, func: relax.Function) -> relax.Function:
    def rewrite(binding: relax.Binding) -> relax.Binding:
        call = binding.value
        if not is_loop(call):
            return binding
        called = relax.Call(_loop(builder, call), call.args, None, [], call.span, ret_ty=call.ty)
        return relax.VarBinding(binding.var, called)

    return rewrite_bindings(func, rewrite)


def _loop(builder: relax.BlockBuilder, call: relax.Call) -> tvm.ir.GlobalVar:
    """The function of one loop: of the limit of its rounds, its condition, the states, and what else its body reads."""
    body, count = body_of(call)
    normal = normalize(tvm.IRModule({"main": body}))["main"].without_attr("global_symbol")
    step = builder.add_func(_without_loops(builder, normal), "loop_body")
    types = [arg.ty for arg in call.args]
    trips, condition, states, read = types[0], types[1], types[2 : 2 + count], types[2 + count :]
    carried = [trips, condition, *states]  # the limit's type is that of the round's number, too
    rounds = _one_round(builder, step, carried, [trips, *read])
    for _ in range(_DOUBLINGS):
        rounds = _twice(builder, rounds, carried, [trips, *read])
    params = [relax.Var(f"arg{at}", ty) for at, ty in enumerate(types)]
    with builder.function("loop", params, private=True):
        first = relax.const(0, "int64")
        is_any = builder.emit(relax.op.logical_and(params[1], relax.op.less(first, params[0])))
        given = [first, is_any, *params[2 : 2 + count]]
        run = relax.Call(rounds, [*given, params[0], *params[2 + count :]])
        found = builder.emit(relax.If(is_any, run, builder.emit(relax.Tuple(given))))
        fields = [builder.emit(relax.TupleGetItem(found, 2 + at)) for at in range(count)]
        return builder.emit_func_output(builder.emit(relax.Tuple(fields)))


def _one_round(
    builder: relax.BlockBuilder, step: tvm.ir.GlobalVar, carried: Sequence[relax.Type], others: Sequence[relax.Type]
) -> tvm.ir.GlobalVar:
    """Of the round's number, the condition, the states, the limit and the rest: the first three for the next round."""
    params = [relax.Var(f"arg{at}", ty) for at, ty in enumerate([*carried, *others])]
    inner, trips, read = params[: len(carried)], params[len(carried)], params[len(carried) + 1 :]
    with builder.function("loop_round", params, private=True):
        found = builder.emit(relax.Call(step, [*inner, *read]))
        fields = [builder.emit(relax.TupleGetItem(found, at)) for at in range(len(carried) - 1)]
        number = builder.emit(relax.op.add(params[0], relax.const(1, "int64")))
        goes_on = builder.emit(relax.op.logical_and(fields[0], relax.op.less(number, trips)))
        return builder.emit_func_output(builder.emit(relax.Tuple([number, goes_on, *fields[1:]])))


def _twice(
    builder: relax.BlockBuilder, rounds: tvm.ir.GlobalVar, carried: Sequence[relax.Type], others: Sequence[relax.Type]
) -> tvm.ir.GlobalVar:
    """`rounds`, and `rounds` again if the condition holds then."""
    params = [relax.Var(f"arg{at}", ty) for at, ty in enumerate([*carried, *others])]
    with builder.function("loop_rounds", params, private=True):
        once = builder.emit(relax.Call(rounds, params))
        fields = [builder.emit(relax.TupleGetItem(once, at)) for at in range(len(carried))]
        again = relax.Call(rounds, [*fields, *params[len(carried) :]])
        return builder.emit_func_output(builder.emit(relax.If(fields[1], again, once)))
