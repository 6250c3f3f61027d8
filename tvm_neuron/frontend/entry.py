"""The function of a module that its library runs: the compiler knows it as `main`, its user by the name it has."""

import warnings

import tvm
from tvm import relax
from tvm.relax.analysis import post_order_visit

from tvm_neuron.errors import ModelError, PlacementWarning

MAIN = "main"


def entry_name(mod: tvm.IRModule) -> str:
    """The name of the one graph function that can be called from outside and that no other calls.

    Raises:
        ModelError: there is none, or more than one.
    """
    functions = {var.name_hint: func for var, func in mod.functions_items() if isinstance(func, relax.Function)}
    called = set[str]()
    for name, func in functions.items():
        called |= _called_by(func) - {name}
    found = [name for name, func in functions.items() if name not in called and _is_public(name, func)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise ModelError("the module has no function of Relax that can be called from outside: name its entry 'main'")
    raise ModelError(
        f"the module has {len(found)} functions that can be called from outside: {', '.join(sorted(found))}; a library "
        "runs one. Leave the others out: tvm.IRModule({var: func for var, func in mod.functions_items() if "
        f"var.name_hint != '{max(found)}'}})"
    )


def with_main(mod: tvm.IRModule) -> tvm.IRModule:
    """The module with its entry as `main`, and in it the functions that it calls.

    Raises:
        ModelError: the module has no entry, or several, or a function of it calls itself.
    """
    name = entry_name(mod)
    _check_ends(mod, name, (), set())
    others = {var: func for var, func in mod.functions_items() if var.name_hint != name}
    inner = {var: func for var, func in others.items() if isinstance(func, relax.Function) and not _is_part(func)}
    entry = mod[name]
    while _called_by(entry) & {var.name_hint for var in inner}:
        entry = entry.inline_functions(inner)
    kept = {var: func for var, func in others.items() if var not in inner}
    return renamed(tvm.IRModule({**kept, mod.get_global_var(name): entry}, attrs=mod.attrs), name, MAIN)


def renamed(mod: tvm.IRModule, old: str, new: str) -> tvm.IRModule:
    """The module with another name for one function, which no other calls."""
    functions = {var: func for var, func in mod.functions_items() if var.name_hint != old}
    entry, func = tvm.ir.GlobalVar(new), mod[old].with_attr("global_symbol", new)
    relax.expr._update_type(entry, func.ty)
    return tvm.IRModule({**functions, entry: func}, attrs=mod.attrs)


def warn_of_open_sizes(main: relax.Function) -> None:
    """Warn, before anything is compiled, of a size of an input that has to be bound for operators to run on a core."""
    shapes = [(var.name, getattr(var.ty, "shape", None)) for var in main.params]
    dims = [(name, *at) for name, shape in shapes if isinstance(shape, relax.ShapeExpr) for at in enumerate(shape)]
    for name, axis, dim in [at for at in dims if isinstance(at[2], tvm.ir.Var)][:1]:
        warnings.warn(
            f"input '{name}' has the size '{dim.name}' at axis {axis}, known at run time only: what depends on it runs "
            "on the CPU. To run it on a NeuronCore, bind the size before compiling: "
            f"mod = tvm.relax.transform.BindSymbolicVars({{'{dim.name}': 8}})(mod)",
            PlacementWarning,
            stacklevel=2,
        )


def _is_public(name: str, func: relax.Function) -> bool:
    return (name == MAIN or "global_symbol" in (func.attrs or {})) and not _is_part(func)


def _is_part(func: relax.Function) -> bool:
    """Whether a pass of TVM's made the function of some calls of another."""
    return any(key in (func.attrs or {}) for key in ("Primitive", "Composite", "Codegen"))


def _check_ends(mod: tvm.IRModule, name: str, callers: tuple[str, ...], ended: set[str]) -> None:
    """Raises ModelError where calls come back to one of the functions that have not ended, `callers`."""
    if name in callers:
        raise ModelError(
            f"function '{name}' of the module calls itself ({' -> '.join((*callers, name))}): a library has no "
            "recursion; write out as many calls as are needed"
        )
    func = mod[name]
    for inner in sorted(_called_by(func) - ended) if isinstance(func, relax.Function) else ():
        _check_ends(mod, inner, (*callers, name), ended)
    ended.add(name)


def _called_by(func: relax.Function) -> set[str]:
    found = set[str]()

    def visit(expr: relax.Expr) -> None:
        if isinstance(expr, tvm.ir.GlobalVar):
            found.add(expr.name_hint)

    post_order_visit(func, visit)
    return found
