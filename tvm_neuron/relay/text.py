"""Expressions, functions and modules as text in Relay's syntax."""

from collections import Counter
from typing import Any

import numpy as np
import tvm
from tvm.ir import GlobalVar

from tvm_neuron.relay.ir.expr import MEANINGS, Call, Constant, Function, If, Let, Op, Tuple, TupleGetItem, Var
from tvm_neuron.relay.ir.functor import children, post_order
from tvm_neuron.relay.ir.ty import is_known, type_text
from tvm_neuron.relay.op.declare import OPERATORS
from tvm_neuron.relay.open_model import OpenModel

_VERSION = '#[version = "0.0.5"]\n'
_ALWAYS = ("pool_size", "axes")
"""Attributes that Relay printed even where they are what operators have by themselves."""

_SHOWN = 20
"""Constants of more elements are printed by their type."""


def expr_text(expr: Any) -> str:
    """An expression with the variables that it takes from outside, or a function."""
    if isinstance(expr, Function):
        return _VERSION + _function(expr, "fn ", _Names())
    names = _Names()
    free = [node for node in post_order(expr) if isinstance(node, Var) and node not in _bound(expr)]
    lines = [f"free_var {names.declared(var)};" for var in free]
    return "\n".join([_VERSION + lines[0] if lines else _VERSION.rstrip(), *lines[1:], *_body(expr, names, result="")])


def module_text(mod: tvm.IRModule) -> str:
    """All functions of Relay in a module."""
    parts = [
        f"def @{var.name_hint}{func.astext()}"
        if isinstance(func, OpenModel)
        else _function(func, f"def @{var.name_hint}", _Names())
        for var, func in sorted(mod.functions_items(), key=lambda item: str(item[0].name_hint))
        if isinstance(func, Function | OpenModel)
    ]
    return _VERSION + "\n\n".join(parts) + "\n"


MEANINGS["astext"] = expr_text


def astext(obj: Any, show_meta_data: bool = True, annotate: Any = None) -> str:
    """The text of an expression or a module, in Relay's syntax."""
    return str(obj.astext(show_meta_data, annotate))


class _Names:
    """The names of variables and of results, each given once."""

    def __init__(self) -> None:
        self._of: dict[Any, str] = {}
        self._taken: Counter[str] = Counter()
        self._results = 0

    def of_var(self, var: Var) -> str:
        if var not in self._of:
            hint = str(var.name_hint)
            self._of[var] = f"%{hint}" if not self._taken[hint] else f"%{hint}_{self._taken[hint]}"
            self._taken[hint] += 1
        return self._of[var]

    def declared(self, var: Var) -> str:
        ty = var.ty if is_known(var.ty) else var.type_annotation
        return f"{self.of_var(var)}: {type_text(ty)}" if ty is not None else self.of_var(var)

    def of(self, expr: Any) -> str | None:
        return self._of.get(expr)

    def result(self, expr: Any) -> str:
        self._of[expr] = f"%{self._results}"
        self._results += 1
        return self._of[expr]


def _bound(expr: Any) -> set[Any]:
    nodes = post_order(expr)
    return {node.var for node in nodes if isinstance(node, Let)} | {
        param for node in nodes if isinstance(node, Function) for param in node.params
    }


def _function(func: Function, head: str, names: _Names) -> str:
    params = [names.declared(param) for param in func.params]
    params += [f"{key}={_value(value)}" for key, value in func.attrs.items()] if func.attrs else []
    returned = func.ty.ret_type if is_known(func.ty) else func.ret_type
    arrow = f" -> {type_text(returned)}" if returned is not None else ""
    inner = "\n".join(f"  {line}" for line in "\n".join(_body(func.body, names, result="")).split("\n"))
    return f"{head}({', '.join(params)}){arrow} {{\n{inner}\n}}"


def _body(expr: Any, names: _Names, result: str) -> list[str]:
    """The lines that compute `expr`; the last one is its value, after `result`."""
    lines: list[str] = []
    while isinstance(expr, Let):
        lines += _body(expr.value, names, f"let {names.declared(expr.var)} = ")
        lines[-1] += ";"
        expr = expr.body
    for node in post_order(expr, _computed_before):
        if node.same_as(expr) or not isinstance(node, Call | If | Tuple | Function) or names.of(node) is not None:
            continue
        text = _node(node, names)
        lines.append(f"{names.result(node)} = {text};")
    return [*lines, result + (names.of(expr) or _node(expr, names))]


def _computed_before(expr: Any) -> list[Any]:
    """What has lines of its own before that of `expr`: not what is inside branches and functions."""
    if isinstance(expr, If):
        return [expr.cond]
    return [] if isinstance(expr, Function | Let) else children(expr)


def _operand(expr: Any, names: _Names) -> str:
    return names.of(expr) or _node(expr, names)


def _node(expr: Any, names: _Names) -> str:
    match expr:
        case Var():
            return names.of_var(expr)
        case GlobalVar():
            return f"@{expr.name_hint}"
        case Op():
            return str(expr.name)
        case Constant():
            return _constant(expr)
        case Tuple():
            inner = ", ".join(_operand(field, names) for field in expr.fields)
            return f"({inner}{',' if len(expr.fields) == 1 else ''})" + _type_of(expr)
        case TupleGetItem():
            return f"{_operand(expr.tuple_value, names)}.{expr.index}" + _type_of(expr)
        case Call():
            args = [*(_operand(arg, names) for arg in expr.args), *_attributes(expr)]
            return f"{_operand(expr.op, names)}({', '.join(args)})" + _type_of(expr)
        case If():
            branches = [_block(branch, names) for branch in (expr.true_branch, expr.false_branch)]
            return f"if ({_operand(expr.cond, names)}) {branches[0]} else {branches[1]}"
        case Function():
            return _function(expr, "fn ", names)
        case Let():
            return _block(expr, names)
    raise TypeError(f"{type(expr).__name__} is no expression of Relay")


def _block(expr: Any, names: _Names) -> str:
    inner = "\n".join(f"  {line}" for line in "\n".join(_body(expr, names, "")).split("\n"))
    return f"{{\n{inner}\n}}"


def _type_of(expr: Any) -> str:
    return f" /* ty={type_text(expr.ty)} */" if is_known(expr.ty) else ""


def _attributes(call: Call) -> list[str]:
    """Those that differ from what the operator has by itself."""
    declared = OPERATORS.get(str(call.op.name)) if isinstance(call.op, Op) else None
    usual = declared.attributes if declared else {}
    return [
        f"{name}={_value(value)}"
        for name, value in call.attrs.as_dict().items()
        if name in _ALWAYS or (value is not None and not (name in usual and usual[name] == value))
    ]


def _value(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, tuple | list | tvm.ir.Array):
        return "[" + ", ".join(map(_value, value)) + "]"
    return f"{value}f" if isinstance(value, float) else str(value)


def _constant(constant: Constant) -> str:
    array = constant.data.numpy()
    if array.size > _SHOWN:
        return f"meta[relay.Constant] /* ty={type_text(constant.ty)} */"
    if array.ndim == 0:
        suffix = {"float32": "f", "float64": "f64", "int64": "i64", "float16": "f16"}.get(array.dtype.name, "")
        return f"{array[()]}{suffix}" if array.dtype != np.bool_ else str(bool(array))
    return f"{array.tolist()} /* ty={type_text(constant.ty)} */"
