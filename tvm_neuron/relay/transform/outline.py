"""PartitionGraph: each region of an annotated module as a function of its own, which its compiler is to have."""

import re
from typing import Any

import tvm
from tvm.ir import GlobalVar

from tvm_neuron.relay.ir.expr import Call, Constant, Function, Tuple, TupleGetItem, Var
from tvm_neuron.relay.ir.functor import ExprMutator, post_order
from tvm_neuron.relay.ir.ty import TupleType
from tvm_neuron.relay.transform.passes import YES, is_external, module_pass
from tvm_neuron.relay.transform.regions import BEGIN, END, Region, is_mark, outside_functions, regions_of


def PartitionGraph(mod_name: str = "default", bind_constants: bool = True) -> tvm.transform.Pass:  # noqa: N802
    """Regions as functions with `Compiler` and `global_symbol`, called where they were.

    Constants that enter a region are in its function; without `bind_constants` they are passed to it.
    """
    return module_pass("PartitionGraph", lambda mod: _cut(mod, mod_name, bind_constants))


def _cut(mod: tvm.IRModule, mod_name: str, bind_constants: bool) -> tvm.IRModule:
    """Regions as functions of the module, called from where they were."""
    result = mod.clone()
    for var, func in mod.functions_items():
        if isinstance(func, Function) and not is_external(func):
            cutter = _Cutter(func.body, f"{mod_name}_", str(var.name_hint), bind_constants)
            body = cutter.visit(func.body)
            result[var] = Function(func.params, body, None, attrs=func.attrs, span=func.span)
            for name, made in cutter.functions.items():
                result[name] = _optimized(name, made)
    return result


class _Cutter(ExprMutator):
    """Replaces the ends of regions by calls of the functions that it makes of them."""

    def __init__(self, body: Any, prefix: str, name: str, bind_constants: bool) -> None:
        super().__init__()
        self.functions: dict[GlobalVar, Function] = {}
        self._prefix, self._name, self._binds = prefix, name, bind_constants
        self._region_of = {node: region for region in regions_of(body) for node in region.nodes}
        self._calls: dict[int, Any] = {}

    def visit_call(self, call: Call) -> Any:
        """For an end, what its region's function gives for the value."""
        if is_mark(call, BEGIN):
            return self.visit(call.args[0])
        if not is_mark(call, END):
            return super().visit_call(call)
        value = call.args[0]
        region = self._region_of.get(value)
        if region is None:
            return self.visit(value)
        if region.number not in self._calls:
            self._calls[region.number] = self._called(region)
        whole = self._calls[region.number]
        if len(region.outputs) == 1:
            return whole
        at = sum(len(_fields(each)) for each in region.outputs[: region.outputs.index(value)])
        fields = [TupleGetItem(whole, at + index) for index in range(len(_fields(value)))]
        return Tuple(fields) if isinstance(value.ty, TupleType) else fields[0]

    def _called(self, region: Region) -> Call:
        inside = _Inside(region, self._binds)
        results = [inside.visit(output) for output in region.outputs]
        body = results[0] if len(results) == 1 else Tuple(
            [part for value, new in zip(region.outputs, results, strict=True) for part in _fields(value, new)]
        )  # fmt: skip
        symbol = re.sub(r"[^A-Za-z0-9_]", "_", f"tvmgen_{self._prefix}{region.compiler}_{self._name}_{region.number}")
        func = Function(list(inside.params.values()), body)
        marks = {"Primitive": YES, "Inline": YES, "Compiler": region.compiler, "global_symbol": symbol}
        for key, value in marks.items():
            func = func.with_attr(key, value)
        var = GlobalVar(symbol)
        self.functions[var] = func
        return Call(var, [self.visit(arg) for arg in inside.params])


def _fields(value: Any, new: Any = None) -> list[Any]:
    """The values that a value counts for among several: the fields of a tuple, or itself."""
    new = value if new is None else new
    if not isinstance(value.ty, TupleType):
        return [new]
    return list(new.fields) if isinstance(new, Tuple) else [TupleGetItem(new, at) for at in range(len(value.ty.fields))]


class _Inside(ExprMutator):
    """Copies a region; `params` are the variables for the values that enter it, by the value."""

    def __init__(self, region: Region, bind_constants: bool) -> None:
        super().__init__()
        self.params: dict[Any, Var] = {}
        self._region, self._binds = region, bind_constants

    def _visit_from_below(self, expr: Any) -> Any:
        for node in post_order(expr, lambda each: outside_functions(each) if self._is_inside(each) else []):
            self.memo_map.setdefault(node, self._copied(node))
        return self.memo_map[expr]

    def _is_inside(self, node: Any) -> bool:
        return node in self._region.nodes and not is_mark(node, BEGIN)

    def _copied(self, node: Any) -> Any:
        if self._is_inside(node):
            return self._method(node)(node)
        value = node.args[0] if is_mark(node, BEGIN) and node in self._region.nodes else node
        if isinstance(value, Constant) and (self._binds or value is node):
            return value
        if _is_constant_tuple(value):
            return value
        if value not in self.params:
            name = f"{self._region.compiler}_{self._region.number}_i{len(self.params)}"
            self.params[value] = Var(name, value.checked_type)
        return self.params[value]

    def visit_function(self, fn: Function) -> Any:
        """A function that is called in place, as it is."""
        return fn


def _is_constant_tuple(value: Any) -> bool:
    return isinstance(value, Tuple) and all(isinstance(part, Constant) for part in value.fields)


def _optimized(name: GlobalVar, func: Function) -> Function:
    """What the compiler's own pass `relay.ext.<compiler>.optimize` makes of its function, if there is one."""
    own = tvm.get_global_func(f"relay.ext.{func.attrs['Compiler']}.optimize", allow_missing=True)
    if own is None:
        return func
    changed = own(tvm.IRModule({name: func.without_attr("Compiler")}))[name]
    return changed.with_attr("Compiler", func.attrs["Compiler"])
