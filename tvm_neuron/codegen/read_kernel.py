"""read_kernel: a TIR kernel read once into blocks; the only place that looks inside TIR."""

from collections.abc import Sequence
from typing import Any

from tvm import ir, s_tir, tirx

from tvm_neuron.errors import CompileError
from tvm_neuron.program import Origin
from tvm_neuron.schedule.expr import Apply, Axis, Expr, Index, Load, Num
from tvm_neuron.schedule.graph import Block
from tvm_neuron.schedule.tensor import Tensor

_BINARY = {
    "Add": "add", "Sub": "subtract", "Mul": "multiply", "Div": "divide", "Max": "max", "Min": "min",
    "FloorDiv": "floordiv", "FloorMod": "floormod", "Mod": "floormod", "EQ": "is_equal", "NE": "not_equal",
    "GT": "is_gt", "GE": "is_ge", "LT": "is_lt", "LE": "is_le", "And": "and", "Or": "or",
}  # fmt: skip
_CALLS = {
    "exp": "exp", "log": "log", "sqrt": "sqrt", "rsqrt": "rsqrt", "tanh": "tanh", "sigmoid": "sigmoid", "sin": "sin",
    "fabs": "abs", "pow": "pow", "if_then_else": "select", "fmax": "max", "fmin": "min",
    "floor": "floor", "ceil": "ceil", "round": "round", "nearbyint": "round", "trunc": "trunc",
}  # fmt: skip
_COMBINES = ("add", "max", "min", "multiply")


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
    return [_Reader(tensors, origin).block(statement) for statement in statements]


class _Reader:
    def __init__(self, tensors: list[tuple[Any, Tensor]], origin: Origin) -> None:
        self.tensors = tensors
        self.origin = origin
        self.axes: dict[str, Axis] = {}

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
        output, index = self.tensor(store.buffer), tuple(self.expr(i) for i in store.indices)
        expr = self.expr(store.value)
        if block.init is None:
            return Block(self.origin, tuple(self.axes.values()), output, index, expr)
        combine, expr = self.split_combine(expr, output)
        init = self.expr(block.init.value)
        if not isinstance(init, Num):
            raise CompileError(f"{self.origin}: its reduction starts from no constant")
        return Block(self.origin, tuple(self.axes.values()), output, index, expr, combine, init.value)

    def split_combine(self, expr: Expr, output: Tensor) -> tuple[str, Expr]:
        if isinstance(expr, Apply) and expr.op in _COMBINES:
            left, right = expr.args
            if isinstance(left, Load) and left.tensor is output:
                return expr.op, right
            if isinstance(right, Load) and right.tensor is output:
                return expr.op, left
        raise CompileError(f"{self.origin}: its reduction is none of {', '.join(_COMBINES)}")

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
            return Load(self.tensor(node.source), tuple(self.expr(i) for i in node.indices))
        if kind in _BINARY:
            return Apply(_BINARY[kind], (self.expr(node.a), self.expr(node.b)))
        if kind == "Cast":
            return self.cast(node)
        if kind == "Not":
            return Apply("not", (self.expr(node.a),))
        if kind == "Select":
            return Apply("select", (self.expr(node.condition), self.expr(node.true_value), self.expr(node.false_value)))
        if isinstance(node, ir.Call):
            name = node.op.name.rpartition(".")[2]
            if name in _CALLS:
                return Apply(_CALLS[name], tuple(self.expr(arg) for arg in node.args))
            raise CompileError(
                f"{self.origin} computes {node.op.name}, which no engine of a NeuronCore has"
            )
        raise CompileError(f"{self.origin}: its kernel holds a {kind}: unknown here")

    def cast(self, node: Any) -> Expr:
        """Casts between floats are left to the engines, which compute in float32 and round on the way out."""
        inner = self.expr(node.value)
        if "float" in str(node.ty) and "float" in str(node.value.ty):
            return inner
        return Apply(f"cast.{node.ty}", (inner,))


