"""known_value: what constants alone decide of an expression of Relax, as plain values."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import tvm
from tvm import relax

from tvm_neuron.build import BuildOptions, build


class UnknownError(Exception):
    """It is computed from `inputs` of the function."""

    def __init__(self, inputs: frozenset[str]) -> None:
        super().__init__(", ".join(sorted(inputs)))
        self.inputs = inputs


def known_value(bb: relax.BlockBuilder, value: Any, given: Mapping[str, np.ndarray]) -> Any:
    """The value of an expression, or of a list of them, in the function that `bb` builds; arrays as lists.

    `given` are values of inputs by name. Raises UnknownError: it depends on other inputs.
    """
    if isinstance(value, list):
        return [known_value(bb, part, given) for part in value]
    if isinstance(value, tvm.ir.GenericConst):
        return value.value.numpy().tolist()
    bindings: dict[relax.Var, relax.Expr] = {}
    unknown = set[str]()
    pending = [(var, False) for var in relax.analysis.free_vars(value)]
    order: dict[relax.Var, None] = {}
    while pending:
        var, is_open = pending.pop()
        if is_open:
            order[var] = None
        elif var not in bindings:
            made = bb.lookup_binding(var)
            if made is None and var.name in given:
                made = relax.const(np.asarray(given[var.name]).astype(str(var.ty.dtype)))
            if made is None:
                unknown.add(var.name)
                continue
            bindings[var] = made
            pending += [(var, True), *((each, False) for each in relax.analysis.free_vars(made))]
    if unknown:
        raise UnknownError(frozenset(unknown))
    return _evaluated([(var, bindings[var]) for var in order], value)


def _evaluated(bindings: list[tuple[relax.Var, relax.Expr]], value: relax.Expr) -> Any:
    inner = relax.BlockBuilder()
    with inner.function("main", []):
        with inner.dataflow():
            for var, made in bindings:
                inner.emit_normalized(relax.VarBinding(var, made))
            result = inner.emit_output(value)
        inner.emit_func_output(result)
    with tvm.transform.PassContext():
        executable = build(inner.get(), None, BuildOptions())
    return relax.VirtualMachine(executable, tvm.cpu())["main"]().numpy().tolist()
