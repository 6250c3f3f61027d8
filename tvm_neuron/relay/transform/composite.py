"""MergeComposite: the matches of a table of patterns as functions, which a compiler then takes or leaves as one."""

from collections.abc import Callable, Sequence
from typing import Any

import tvm

from tvm_neuron.relay.dataflow_pattern import DFPattern, partition
from tvm_neuron.relay.infer import typed
from tvm_neuron.relay.ir.expr import Function
from tvm_neuron.relay.lower import functions_of
from tvm_neuron.relay.transform.passes import function_pass_of


def MergeComposite(pattern_table: Sequence[Sequence[Any]]) -> tvm.transform.Pass:  # noqa: N802 - Relay's name
    """Functions with the attribute `Composite` for what patterns match, the first pattern of the table first.

    An entry is a name (`neuron.conv2d_relu`), a pattern and, if wanted, a predicate over the matched expression.

    Raises TypeError: an entry is something else.
    """
    entries = [_entry(each) for each in pattern_table]

    def run(func: Function, mod: tvm.IRModule) -> Function:
        functions = functions_of(mod)
        for name, pattern, check in entries:
            body = partition(pattern, func.body, {"Composite": name}, check)
            if not body.same_as(func.body):  # the next predicate asks for types, too
                func = typed(Function(func.params, body, None, attrs=func.attrs, span=func.span), functions)
        return func

    return function_pass_of("MergeComposite", run)


def _entry(entry: Sequence[Any]) -> tuple[str, DFPattern, Callable[[Any], bool]]:
    name, pattern, check = (*entry, lambda _: True)[:3]
    if len(entry) not in (2, 3) or not isinstance(name, str) or not isinstance(pattern, DFPattern):
        raise TypeError(f"MergeComposite: an entry is (name, pattern) or (name, pattern, check), not {entry!r}")
    return name, pattern, check
