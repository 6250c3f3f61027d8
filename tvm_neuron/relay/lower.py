"""Relay's functions as functions of Relax: what `relay.build` compiles, and where types come from."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import tvm
import tvm_ffi
from tvm import relax
from tvm.ir import GlobalVar

from tvm_neuron.errors import ModelError, NeuronError
from tvm_neuron.frontend.blocks import ended_on_error
from tvm_neuron.frontend.onnx.by_tvm import told
from tvm_neuron.frontend.onnx.needs import NeedsValueError
from tvm_neuron.frontend.onnx.stages import Stages
from tvm_neuron.frontend.origin import OPERATORS_ATTR, Origin, retag, with_origin
from tvm_neuron.relay.ir.expr import Call, Constant, Function, If, Let, Op, Tuple, TupleGetItem, Var
from tvm_neuron.relay.ir.functor import children, post_order
from tvm_neuron.relay.ir.ty import AnyDim, TensorType, TupleType
from tvm_neuron.relay.known import UnknownError, known_value
from tvm_neuron.relay.op.declare import COMPUTED, OPERATORS, Operator, attributes
from tvm_neuron.relay.open_model import OpenModel

_NO_NUMBER = "int() argument must be"
"""In what Python says of a size that is an expression."""

_IN_STAGES = (
    "sizes inside this model, as the number of boxes of a detector, are told by a run alone: relay.vm.compile and "
    "relay.create_executor compile it in stages, each for what those before it gave; relay.build makes one library"
)

OUTSIDE_ATTR = "neuron.outside"
"""Attribute of `main`: the names of the operators in no region for the core, of a module that has such regions."""


def to_relax(mod: tvm.IRModule, known: Mapping[str, Any] | None = None, is_flat: bool = False) -> tvm.IRModule:
    """The module with `main` as a function of Relax; what it calls of Relay's functions is in it.

    `known` are values of parameters that attributes of operators are computed from. The tensors of nested tuples are
    one after another in the result if `is_flat`, as graph executors have them.

    Raises ModelError: an operator is unknown or does not take these types, a variable has no type, or there is no main;
    NeedsShapeError, NeedsValueError: of a model that is open.
    """
    main = main_of(mod)
    if isinstance(main, OpenModel):
        closed = main.closed({}, {})
        if isinstance(closed, Stages):
            raise ModelError(_IN_STAGES)
        return closed
    lowering = Lowering(functions_of(mod), known=known)
    params = [lowering.parameter(param) for param in main.params]
    return lowering.module(main, params, is_flat)


def main_of(mod: tvm.IRModule) -> Function | OpenModel:
    """The function `main`, or the only one.

    Raises ModelError: there is none.
    """
    functions = {var.name_hint: func for var, func in mod.functions_items() if isinstance(func, Function | OpenModel)}
    if "main" in functions:
        return functions["main"]
    if len(functions) == 1:
        return next(iter(functions.values()))
    raise ModelError(f"the module has no function 'main', only {', '.join(sorted(functions)) or 'none at all'}")


def functions_of(mod: tvm.IRModule) -> dict[str, Function]:
    """The functions of Relay in a module, by name."""
    return {var.name_hint: func for var, func in mod.functions_items() if isinstance(func, Function)}


def _is_nested(ty: Any) -> bool:
    return isinstance(ty, TupleType) and any(isinstance(part, TupleType) for part in ty.fields)


class Lowering:
    """One walk over an expression. `types` are Relay's types of all that was walked, if it notes them."""

    def __init__(
        self, functions: Mapping[str, Function], notes_types: bool = False, known: Mapping[str, Any] | None = None
    ) -> None:
        self._notes_types = notes_types
        self._known = known or {}
        self.bb = relax.BlockBuilder()
        self.values: dict[Any, Any] = {}
        self.types: dict[Any, Any] = {}
        self.filled: dict[Var, TensorType] = {}
        self._functions = functions
        self._open: list[str] = []
        self._has_regions = any(_is_region(func) for func in functions.values())
        self._regions_open = 0
        self._outside: list[str] = []
        self._counts: Counter[str] = Counter()
        self._names: Counter[str] = Counter()
        self.origins: dict[Call, Origin] = {}
        self._origins: list[Origin] = []
        self._dims = Dims()

    def parameter(self, param: Var) -> Var:
        """Remembers a parameter, whose variable of Relax is made when its type is known."""
        if isinstance(param.type_annotation, TensorType | TupleType):
            self.values[param] = self._variable(param, param.type_annotation)
        return param

    def _variable(self, param: Var, ty: Any) -> relax.Var:
        """With a name of its own: those of Relay's variables need not differ."""
        name = str(param.name_hint)
        self._names[name] += 1
        return relax.Var(name if self._names[name] == 1 else f"{name}_{self._names[name] - 1}", self._dims.to_relax(ty))

    def module(self, func: Function, params: list[Var], is_flat: bool = False) -> tvm.IRModule:
        """The module whose `main` computes the body of `func`."""
        # the variables without a type get one from what uses them, so the parameters are known after the body
        bb = self.bb
        with bb.function("main"):
            with ended_on_error(bb), bb.dataflow():
                value = self.lower(func.body)
                if is_flat and _is_nested(self._type(value)):
                    value = list(self._tensors(value))
                result = bb.emit_output(self._single(value))
            bb.emit_func_output(result, [self._made(param) for param in params])
        mod = bb.get()
        operators = [origin.encode() for origin in self._origins]
        attrs = {"num_input": len(params), OPERATORS_ATTR: operators}
        attrs |= {OUTSIDE_ATTR: self._outside} if self._has_regions else {}
        mod["main"] = retag(mod["main"].with_attrs(attrs))
        return mod

    def lower(self, expr: Any) -> Any:
        """What `expr` is in Relax: an expression, or a list of them for a tuple."""
        for node in post_order(expr, self._before):
            if node not in self.values and not self._is_untyped(node):
                self.values[node] = self._node(node)
                if self._notes_types and not isinstance(node, Function | GlobalVar):
                    self.types[node] = self._type(self.values[node])
        return self.values[expr]

    def type_of(self, expr: Any) -> Any:
        """The Relay type of what was lowered."""
        return self._type(self.values[expr])

    def _type(self, value: Any) -> Any:
        if isinstance(value, list):
            return TupleType([self._type(part) for part in value])
        return self._dims.to_relay(value.ty)

    def _before(self, expr: Any) -> list[Any]:
        if expr in self.values or isinstance(expr, Function | Let | If):
            return [expr.cond] if isinstance(expr, If) else []
        if isinstance(expr, Call) and isinstance(expr.op, Function | GlobalVar):
            return list(expr.args)
        return children(expr)

    def _is_untyped(self, node: Any) -> bool:
        return isinstance(node, Var) and node not in self.values

    def _made(self, param: Var) -> relax.Var:
        if param not in self.values:
            raise ModelError(f"the variable '{param.name_hint}' has no type, and nothing that uses it gives it one")
        return self.values[param]

    def _node(self, expr: Any) -> Any:
        match expr:
            case Constant():
                return relax.const(expr.data)
            case Tuple():
                return [self._operand(field) for field in expr.fields]
            case TupleGetItem():
                return self._field(expr)
            case Call():
                return self._call(expr)
            case Let():
                return self._let(expr)
            case If():
                return self._choice(expr)
            case Function() | GlobalVar():
                return expr  # its calls put it in place
        raise ModelError(f"{type(expr).__name__} can't be compiled")

    def _operand(self, expr: Any) -> Any:
        if self._is_untyped(expr):
            return self._made(expr)
        return self.values[expr]

    def _field(self, expr: TupleGetItem) -> Any:
        value = self._operand(expr.tuple_value)
        if isinstance(value, list):
            return value[expr.index]
        return self.bb.emit(relax.TupleGetItem(value, expr.index))

    def _single(self, value: Any) -> Any:
        return relax.Tuple([self._single(part) for part in value]) if isinstance(value, list) else value

    def _tensors(self, value: Any) -> Iterator[Any]:
        if isinstance(value, list):
            parts = value
        elif isinstance(value.ty, relax.TupleType):
            parts = [self.bb.emit(relax.TupleGetItem(value, at)) for at in range(len(value.ty.fields))]
        else:
            yield value
            return
        for part in parts:
            yield from self._tensors(part)

    def _let(self, expr: Any) -> Any:
        while isinstance(expr, Let):
            self.values[expr.var] = self.lower(expr.value)
            expr = expr.body
        return self.lower(expr)

    def _call(self, call: Call) -> Any:
        if isinstance(call.op, Op):
            return self._operator_call(call)
        callee: Any = self.values.get(call.op, call.op)
        name = callee.name_hint if isinstance(callee, GlobalVar) else ""
        if name in self._open:
            raise ModelError(f"@{name} calls itself; this target has no recursion, and loops of unknown length neither")
        func: Any = self._functions.get(name) if name else callee
        if not isinstance(func, Function):
            raise ModelError(f"a call of {name or type(func).__name__}, which is no function of this module")
        if len(call.args) != len(func.params):
            raise ModelError(f"@{name} takes {len(func.params)} arguments, the call gives {len(call.args)}")
        args = [self._argument(*pair) for pair in zip(call.args, func.params, strict=True)]
        if self._notes_types:
            untyped = [pair for pair in zip(func.params, args, strict=True) if pair[0].type_annotation is None]
            self.types |= {param: self._type(arg) for param, arg in untyped}
        return self._inlined(func, args, name)

    def _argument(self, arg: Any, param: Var) -> Any:
        """An argument of a function; a variable without a type gets that of the parameter."""
        if self._is_untyped(arg) and isinstance(param.type_annotation, TensorType | TupleType):
            self._fill_in(arg, param.type_annotation)
        return self._operand(arg)

    def _fill_in(self, var: Var, ty: Any) -> None:
        self.filled[var] = ty
        self.values[var] = self._variable(var, ty)

    def _inlined(self, func: Function, args: list[Any], name: str) -> Any:
        outer, self.values = self.values, {**self.values, **dict(zip(func.params, args, strict=True))}
        self._open.append(name) if name else None
        self._regions_open += _is_region(func)
        try:
            return self.lower(func.body)
        finally:
            self.values = outer
            self._regions_open -= _is_region(func)
            if name:
                self._open.pop()

    def _operator_call(self, call: Call) -> Any:
        name = str(call.op.name)
        declared = OPERATORS.get(name)
        if declared is None:
            raise ModelError(f"the operator '{name}' of Relay is not here")
        origin = self._origin(call)
        attrs = call.attrs.as_dict()
        names = attrs.get(COMPUTED, ())
        given = call.args[: len(call.args) - len(names)]
        found = [self._operand(arg) for arg in call.args[len(given) :]]
        computed = dict(zip(names, found, strict=True))
        args = [self._operand(arg) for arg in given] if not any(map(self._is_untyped, given)) else []
        try:
            values = {name: self._value(declared, name, value, origin) for name, value in computed.items()}
        except NeedsValueError as error:
            if not self._notes_types:
                raise
            if declared.ranks is None:
                raise ModelError(str(error)) from error  # the other crosses no pass
            return self._of_open_sizes(declared, args, attrs | computed)
        attrs = attributes(declared, attrs, values)
        with _told(origin):
            self._fill(declared, given, attrs)
        args = [self._operand(arg) for arg in given]
        if declared.variadic and len(args) == 1 and isinstance(args[0], list):
            args = args[0]
        elif declared.variadic and len(args) == 1 and isinstance(args[0].ty, relax.TupleType):
            args = [self.bb.emit(relax.TupleGetItem(args[0], i)) for i in range(len(args[0].ty.fields))]
        try:
            with _told(origin):
                return self._emitted(declared.lower(args, attrs), origin)
        except ModelError as error:
            if self._notes_types and declared.ranks and _NO_NUMBER in str(error.__cause__):
                return self._of_open_sizes(declared, args, attrs)
            raise

    def _of_open_sizes(self, declared: Operator, args: Any, attrs: Mapping[str, Any]) -> Any:
        """What stands for results of which only the number of dimensions is known, when types are asked for."""
        assert declared.ranks is not None
        dtype = attrs.get("dtype") or args[0].ty.dtype
        found = [relax.Var("open", relax.TensorType(ndim=rank, dtype=dtype)) for rank in declared.ranks(args, attrs)]
        return found if declared.outputs is not None else found[0]

    def _value(self, declared: Operator, name: str, value: Any, origin: Origin) -> Any:
        """The value of an attribute that is computed, or what computes it where the body takes that."""
        if name in declared.tensors:
            return value
        try:
            return known_value(self.bb, value, self._known)
        except UnknownError as error:
            if self._notes_types and name in declared.shapeless:
                return declared.attributes[name]
            names = ", ".join(sorted(error.inputs))
            message = (
                f"{origin}: it needs the value of '{name}' when it is compiled, which comes from {names}: give that in "
                "params, or call the function by an executor or the VM, which take it from each call"
            )
            raise NeedsValueError(message, error.inputs) from error

    def _emitted(self, value: Any, origin: Origin) -> Any:
        """The expression bound to variables, the last call of each with its origin: what precedes it takes it over."""
        if isinstance(value, list | tuple):
            return [self._emitted(part, origin) for part in value]
        value = self.bb.normalize(value)
        _check_sizes(value.ty)
        if isinstance(value, relax.Call):
            value = with_origin(value, origin)
        return self.bb.emit(value) if isinstance(value, relax.Call | relax.TupleGetItem) else value

    def _fill(self, declared: Operator, args: list[Any], attrs: Mapping[str, Any]) -> None:
        missing = [index for index, arg in enumerate(args) if self._is_untyped(arg)]
        if not missing or declared.fill is None:
            return
        known = [None if index in missing else self.type_of(arg) for index, arg in enumerate(args)]
        for index, ty in declared.fill(known, attrs).items():
            if index in missing:
                self._fill_in(args[index], ty)

    def _origin(self, call: Call) -> Origin:
        name = str(call.op.name)
        source = getattr(call.span, "source_name", None)
        label = source.name if source is not None else f"{name}_{self._counts[name]}"
        self._counts[name] += 1
        origin = Origin(label, name)
        self._origins.append(origin)
        self.origins[call] = origin
        if not self._regions_open:
            self._outside.append(label)
        return origin

    def _choice(self, expr: If) -> Any:
        """Both branches, and a selection between them: programs of the core have no branches."""
        if self._is_untyped(expr.cond):
            self._fill_in(expr.cond, TensorType((), "bool"))
        branches = [self._inlined(Function([], branch), [], "") for branch in (expr.true_branch, expr.false_branch)]
        return self._selected(self._operand(expr.cond), *branches)

    def _selected(self, cond: Any, one: Any, other: Any) -> Any:
        if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
            return [self._selected(cond, *parts) for parts in zip(one, other, strict=True)]
        if isinstance(one, list) or isinstance(other, list) or not tvm_ffi.structural_equal(one.ty, other.ty):
            types = " and ".join(str(self._type(value)) for value in (one, other))
            raise ModelError(f"the branches of an If give {types}: they must be the same")
        return self.bb.emit(relax.op.where(cond, one, other))


def _check_sizes(ty: Any) -> None:
    """Raises ModelError: a tensor has fewer than no elements along an axis, as of a window larger than its input."""
    for part in ty.fields if isinstance(ty, relax.TupleType) else [ty]:
        shape = part.shape if isinstance(part, relax.TensorType) and isinstance(part.shape, relax.ShapeExpr) else ()
        sizes = [int(dim) if isinstance(dim, tvm.tirx.IntImm) else dim for dim in shape]
        if any(isinstance(size, int) and size < 0 for size in sizes):
            raise ModelError(f"its result would have the shape [{', '.join(map(str, sizes))}]")


def _is_region(func: Function) -> bool:
    return bool(func.attrs) and func.attrs.get("Compiler") == "neuron"


@contextmanager
def _told(origin: Origin) -> Iterator[None]:
    """What Relax refuses inside, as an error that names the operator."""
    try:
        yield
    except NeuronError as error:
        raise type(error)(f"{origin}: {error}") from error
    except (RuntimeError, TypeError, ValueError, IndexError, AttributeError) as error:
        if _NO_NUMBER in str(error):
            raise ModelError(
                f"{origin}: it needs sizes that are open here: give numbers in the shapes of the inputs, or call it by "
                "an executor or the VM, which take the sizes of each call"
            ) from error
        raise ModelError(f"{origin}: {told(error)}") from error


class Dims:
    """Dimensions of Relay and of Relax, whose variables are of another dtype."""

    def __init__(self) -> None:
        self._there: dict[Any, Any] = {}
        self._back: dict[Any, Any] = {}

    def to_relax(self, ty: Any) -> Any:
        """A type of Relax."""
        if isinstance(ty, TupleType):
            return relax.TupleType([self.to_relax(part) for part in ty.fields])
        return relax.TensorType([self._dim(dim) for dim in ty.shape], ty.dtype)

    def to_relay(self, ty: Any) -> Any:
        """A type of Relay; dimensions that nothing is known of become `Any`."""
        if isinstance(ty, relax.TupleType):
            return TupleType([self.to_relay(part) for part in ty.fields])
        if not isinstance(ty, relax.TensorType):
            raise ModelError(f"a value of {ty} is no tensor")
        shape = ty.shape if isinstance(ty.shape, relax.ShapeExpr) else None
        if shape is None:
            return TensorType([AnyDim() for _ in range(max(int(ty.ndim), 0))], ty.dtype)
        return TensorType([self._restored(dim) for dim in shape], ty.dtype)

    def _dim(self, dim: Any) -> Any:
        if isinstance(dim, int):
            return dim
        if isinstance(dim, AnyDim):
            return tvm.tirx.Var("any", "int64")
        return _replaced(dim, self._variable)

    def _variable(self, var: Any) -> Any:
        if var not in self._there:
            self._there[var] = tvm.tirx.Var(var.name, "int64")
            self._back[self._there[var]] = var
        return self._there[var]

    def _restored(self, dim: Any) -> Any:
        return int(dim) if isinstance(dim, tvm.tirx.IntImm) else _replaced(dim, lambda var: self._back.get(var, var))


def _replaced(dim: Any, replace: Callable[[Any], Any]) -> Any:
    """The expression with other variables, computed in their dtype."""
    if isinstance(dim, tvm.ir.Var):
        return replace(dim)
    if isinstance(dim, tvm.tirx.IntImm):
        return int(dim)
    if hasattr(dim, "a") and hasattr(dim, "b"):
        parts = [_replaced(part, replace) for part in (dim.a, dim.b)]
        numbers = [part for part in parts if isinstance(part, tvm.ir.Expr)]
        dtype = numbers[0].ty.dtype if numbers else "int64"
        return type(dim)(*(p if isinstance(p, tvm.ir.Expr) else tvm.tirx.IntImm(dtype, p) for p in parts))
    return dim
