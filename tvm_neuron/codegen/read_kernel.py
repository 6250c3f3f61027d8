"""read_kernel: a TIR kernel read once into blocks; the only place that looks inside TIR."""

from collections.abc import Sequence
from math import inf, prod
from typing import Any

from tvm import ir, s_tir, tirx

from tvm_neuron.codegen.derived import DERIVED
from tvm_neuron.codegen.integers import (
    arithmetic,
    bitwise,
    cast,
    chosen,
    combines_exactly,
    inexact,
    inverted,
    is_integer,
    result_span,
)
from tvm_neuron.errors import CompileError
from tvm_neuron.program import Origin
from tvm_neuron.schedule.expr import Apply, Axis, Expr, Index, Load, Num, loads
from tvm_neuron.schedule.graph import Block
from tvm_neuron.schedule.operations import NEUTRAL
from tvm_neuron.schedule.tensor import Tensor

_BINARY = {
    "Add": "add", "Sub": "subtract", "Mul": "multiply", "Div": "divide", "Max": "max", "Min": "min",
    "FloorDiv": "floordiv", "FloorMod": "floormod", "Mod": "truncmod", "EQ": "is_equal", "NE": "not_equal",
    "GT": "is_gt", "GE": "is_ge", "LT": "is_lt", "LE": "is_le", "And": "and", "Or": "or",
}  # fmt: skip
_CALLS = {
    "exp": "exp", "log": "log", "sqrt": "sqrt", "rsqrt": "rsqrt", "tanh": "tanh", "sigmoid": "sigmoid", "sin": "sin",
    "erf": "erf",
    "fabs": "abs", "pow": "pow", "if_then_else": "select", "fmax": "max", "fmin": "min",
    "floor": "floor", "ceil": "ceil", "round": "round", "nearbyint": "round", "trunc": "trunc",
}  # fmt: skip
_BITWISE = {
    "BitwiseAnd": "bitwise_and", "BitwiseOr": "bitwise_or", "BitwiseXor": "bitwise_xor",
    "LShift": "logical_shift_left", "RShift": "arith_shift_right",
}  # fmt: skip
_COMBINES = {"Add": "add", "Max": "max", "Min": "min", "Mul": "multiply", "And": "min", "Or": "max"}

MOST_TERMS = 2000


def read_kernel(func: Any, arguments: Sequence[Tensor], results: Sequence[Tensor], origin: Origin) -> list[Block]:
    """The blocks of a PrimFunc whose parameters are `arguments` followed by `results`, in order.

    Raises:
        CompileError: it holds something else than loops around single stores.
    """
    root = func.body.block if isinstance(func.body, s_tir.SBlockRealize) else func.body.body.block
    tensors: list[tuple[Any, Tensor]] = list(zip(func.params, [*arguments, *results], strict=True))
    for buffer in root.alloc_buffers:
        shape = tuple(int(extent) for extent in buffer.ty.shape)
        tensors.append((buffer, Tensor(f"{results[0].name}.{buffer.name}", shape, str(buffer.ty.dtype))))
    statements = root.body.seq if isinstance(root.body, tirx.SeqStmt) else [root.body]
    blocks: list[Block] = []
    for statement in statements:
        block = _Reader(tensors, origin).block(statement)
        blocks.append(block)
        block.output.span = result_span([each for each in blocks if each.output is block.output])
    return blocks


class _Reader:
    def __init__(self, tensors: list[tuple[Any, Tensor]], origin: Origin) -> None:
        self.tensors = tensors
        self.origin = origin
        self.axes: dict[str, Axis] = {}
        self.is_place = False
        self.sizes: dict[int, tuple[Expr, int]] = {}  # with the expression, so that its id stays its own

    def block(self, statement: Any) -> Block:
        while isinstance(statement, tirx.For):
            statement = statement.body
        if not isinstance(statement, s_tir.SBlockRealize) or not isinstance(statement.block.body, tirx.BufferStore):
            raise CompileError(f"{self.origin}: its kernel is no loop nest around one store")
        block = statement.block
        self.axes = {
            iv.var.name: Axis(iv.var.name, int(iv.dom.extent), iv.iter_type == tirx.IterVar.CommReduce)
            for iv in block.iter_vars
        }
        store = block.body
        output, index = self.tensor(store.buffer), tuple(self.place(i) for i in store.indices)
        axes = tuple(self.axes.values())
        if block.init is None:
            return Block(self.origin, axes, output, index, self.expr(store.value))
        combine, expr = self.combined(store.value, output)
        init = self.expr(block.init.value)
        if not isinstance(init, Num):
            raise CompileError(f"{self.origin}: its reduction starts from no constant")
        start = init.value
        if combine in ("max", "min") and (is_integer(output.dtype) or NEUTRAL[combine](start)):
            # the least or largest of its dtype, so that any value replaces it
            start = {"max": -inf, "min": inf}[combine]
        return Block(self.origin, axes, output, index, expr, combine, start)

    def combined(self, node: Any, output: Tensor) -> tuple[str, Expr]:
        """How a reduction combines its terms, and the term."""
        combine = _COMBINES.get(type(node).__name__)
        if combine is None:
            raise CompileError(f"{self.origin}: its reduction is none of {', '.join(_COMBINES)}")
        term = self.term(node, output)
        count = prod(axis.extent for axis in self.axes.values() if axis.is_reduction)
        if is_integer(output.dtype) and not combines_exactly(combine, output.dtype, term, count):
            return combine, inexact("copy", term)
        return combine, term

    def term(self, node: Any, output: Tensor) -> Expr:
        """What a reduction combines with the value so far.

        Raises:
            CompileError: it combines something else.
        """
        sides = (node.a, node.b)
        for old, term in (sides, sides[::-1]):
            if isinstance(old, ir.TensorLoad) and self.tensor(old.source) is output:
                return self.expr(term)
        raise CompileError(f"{self.origin}: its reduction combines no earlier value")

    def tensor(self, buffer: Any) -> Tensor:
        return next(tensor for known, tensor in self.tensors if known.same_as(buffer))

    def expr(self, node: Any) -> Expr:
        kind = type(node).__name__
        if isinstance(node, tirx.IntImm | tirx.FloatImm):
            return Num(node.value)
        if isinstance(node, ir.Var) and node.name not in self.axes:
            raise CompileError(f"{self.origin} depends on '{node.name}', unknown until it runs")
        if isinstance(node, ir.Var):
            return Index(self.axes[node.name])
        if isinstance(node, ir.TensorLoad):
            return Load(self.tensor(node.source), tuple(self.place(i) for i in node.indices))
        if kind in _BINARY:
            return self.binary(_BINARY[kind], node.a, node.b)
        if kind in _BITWISE and not self.is_place:
            return self.limited(bitwise(_BITWISE[kind], _dtype(str(node.a.ty)), self.expr(node.a), self.expr(node.b)))
        if kind == "BitwiseNot":
            return self.limited(inverted(_dtype(str(node.a.ty)), self.expr(node.a)))
        if kind == "Cast":
            inner, source, target = self.expr(node.value), _dtype(str(node.value.ty)), _dtype(str(node.ty))
            is_width = self.is_place and is_integer(source) and is_integer(target)  # places fit into either
            return inner if is_width else cast(inner, source, target)
        if kind == "Not":
            return Apply("not", (self.expr(node.a),))
        if kind == "Select":
            return self.call("if_then_else", (node.condition, node.true_value, node.false_value))
        if isinstance(node, ir.Call):
            return self.call(node.op.name.rpartition(".")[2], tuple(node.args))
        raise CompileError(f"{self.origin}: its kernel holds a {kind}: unknown here")

    def place(self, node: Any) -> Expr:
        """An index: whole numbers, never negative, so that every division rounds down."""
        outside, self.is_place = self.is_place, True
        found = self.expr(node)
        self.is_place = outside
        return found

    def binary(self, op: str, left: Any, right: Any) -> Expr:
        return self.limited(self.binary_expr(op, left, right))

    def call(self, name: str, operands: tuple[Any, ...]) -> Expr:
        return self.limited(self.call_expr(name, operands))

    def limited(self, expr: Expr) -> Expr:
        """The expression, unless it is so large that passes over it would take forever (derived forms repeat terms).

        Raises:
            CompileError: it is.
        """
        if self.size(expr) > MOST_TERMS:
            raise CompileError(f"{self.origin} computes each element from more than {MOST_TERMS} terms")
        return expr

    def size(self, expr: Expr) -> int:
        """The number of terms, repeated ones counted each time; every part is looked at once."""
        if not isinstance(expr, Apply):
            return 1
        if id(expr) not in self.sizes:
            self.sizes[id(expr)] = (expr, 1 + sum(map(self.size, expr.args)))
        return self.sizes[id(expr)][1]

    def binary_expr(self, op: str, left: Any, right: Any) -> Expr:
        values, dtype = (self.expr(left), self.expr(right)), _dtype(str(left.ty))
        if self.is_place and not (op == "divide" and is_integer(dtype)):
            return Apply("floormod" if op == "truncmod" else op, values)
        if is_integer(dtype):
            return arithmetic(op, dtype, *values)
        if op == "floormod":
            return Apply("mod", values)
        return DERIVED[op](*values) if op in DERIVED else Apply(op, values)

    def call_expr(self, name: str, operands: tuple[Any, ...]) -> Expr:
        values = tuple(self.expr(operand) for operand in operands)
        is_whole = name == "if_then_else" and not self.is_place and is_integer(_dtype(str(operands[1].ty)))
        if is_whole and any(True for _ in loads(values[0])):
            return chosen(*values)
        if name in DERIVED and not self.is_place:
            return DERIVED[name](*values)
        if name in _CALLS:
            return Apply(_CALLS[name], values)
        raise CompileError(f"{self.origin} computes {name}, which no engine of a NeuronCore has")


def _dtype(type_: str) -> str:
    """The name of a scalar dtype out of its type in TIR."""
    return type_.removeprefix("T.").removesuffix("()")
