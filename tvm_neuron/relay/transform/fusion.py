"""FuseOps: which operators would run as one kernel in TVM, as functions with the attribute `Primitive`; DefuseOps.

What runs together on the NeuronCore is decided by the code generator, which sees through these functions.
"""

from typing import Any

import tvm

from tvm_neuron.relay.ir.expr import Call, Constant, Function, Op, Tuple, Var
from tvm_neuron.relay.ir.functor import ExprMutator, Substitute, children, post_order, rebuilt
from tvm_neuron.relay.op.kinds import OpPattern, pattern_of
from tvm_neuron.relay.transform.passes import YES, attribute, function_pass_of


def FuseOps(fuse_opt_level: int = -1) -> tvm.transform.Pass:  # noqa: N802 - Relay's name
    """Operators as primitive functions: each its own at level 0, fused from level 1 on; -1 is the context's level."""

    def run(func: Function, _mod: tvm.IRModule) -> Function:
        level = tvm.transform.PassContext.current().opt_level if fuse_opt_level < 0 else fuse_opt_level
        if attribute(func, "Primitive"):
            return func
        return Function(func.params, _fused(func.body, is_joining=level > 0), None, attrs=func.attrs, span=func.span)

    return function_pass_of("FuseOps", run)


class _Groups:
    """Which calls become one function: each group has a root, the call whose value leaves it, and a kind."""

    def __init__(self, expr: Any, is_joining: bool) -> None:
        self.nodes = post_order(expr, lambda node: [] if isinstance(node, Function) else children(node))
        self.readers: dict[Any, list[Any]] = {node: [] for node in self.nodes}
        for node in self.nodes:
            for child in children(node) if not isinstance(node, Function) else []:
                self.readers[child].append(node)
        self.root = {node: node for node in self.nodes if is_fusable(node)}
        self.kind = {node: _kind(node) for node in self.root}
        if is_joining:
            for node in reversed(self.nodes):
                if node in self.root:
                    self._join(node)

    def _join(self, node: Any) -> None:
        """Put a call into the group of its readers, if they are all in one that takes it."""
        readers = self.readers[node]
        roots = {self.root.get(reader) for reader in readers}
        if not readers or len(roots) != 1 or None in roots or self.kind[node] > OpPattern.OUT_ELEMWISE_FUSABLE:
            return
        (root,) = roots
        members = [other for other in self.root if self.root[other] == root]
        limit = {
            OpPattern.ELEMWISE: OpPattern.COMM_REDUCE, OpPattern.BROADCAST: OpPattern.COMM_REDUCE,
            OpPattern.INJECTIVE: OpPattern.INJECTIVE, OpPattern.COMM_REDUCE: OpPattern.BROADCAST,
            OpPattern.OUT_ELEMWISE_FUSABLE: OpPattern.BROADCAST,
        }[self.kind[node]]  # fmt: skip
        is_tuple = isinstance(root, Tuple)
        above = [self.kind[member] for member in members if not isinstance(member, Tuple)]
        if is_tuple or any(kind > limit for kind in above):
            return
        if self.kind[node] >= OpPattern.COMM_REDUCE and any(kind >= OpPattern.COMM_REDUCE for kind in above):
            return
        self.root[node] = root


def is_fusable(node: Any) -> bool:
    """Whether it is a call of an operator, or a tuple, which a group may hold."""
    return (isinstance(node, Call) and isinstance(node.op, Op)) or isinstance(node, Tuple)


def _kind(node: Any) -> OpPattern:
    return OpPattern.INJECTIVE if isinstance(node, Tuple) else pattern_of(node.op)


def _fused(expr: Any, is_joining: bool) -> Any:
    groups = _Groups(expr, is_joining)
    return _Fused(groups.root).visit(expr)


class _Fused(ExprMutator):
    """Puts a call of a primitive function in place of the root of each group."""

    def __init__(self, root: dict[Any, Any]) -> None:
        super().__init__()
        self._root = root

    def visit_call(self, call: Call) -> Any:
        """The call of the group's function, if this is its root; inner calls are in the function."""
        if call not in self._root:
            return super().visit_call(call)
        return self._function_of(call) if self._root[call] == call else call

    def visit_tuple(self, tup: Tuple) -> Any:
        """The tuple itself, if it is in the function of its reader."""
        return super().visit_tuple(tup) if self._root.get(tup) == tup else tup

    def visit_function(self, fn: Function) -> Any:
        """What is inside of other functions stays as it is."""
        return fn

    def _function_of(self, root: Call) -> Call:
        inner: dict[Any, Any] = {}
        params: list[Var] = []
        args: list[Any] = []
        for node in post_order(root, lambda each: children(each) if self._root.get(each) == root else []):
            if self._root.get(node) == root:
                inner[node] = rebuilt(node, inner)
            elif isinstance(node, Constant) and not node.data.shape:
                inner[node] = node
            else:
                inner[node] = Var(f"p{len(params)}", node.checked_type)
                params.append(inner[node])
                args.append(self.visit(node))
        func = Function(params, inner[root], None).with_attr("Primitive", YES)
        return Call(func, args)


def DefuseOps() -> tvm.transform.Pass:  # noqa: N802
    """The bodies of primitive functions in place of their calls."""
    return function_pass_of("DefuseOps", lambda func, _mod: _Opened().visit(func))


class _Opened(ExprMutator):
    def visit_call(self, call: Call) -> Any:
        """The body of what is called."""
        if not isinstance(call.op, Function) or not attribute(call.op, "Primitive"):
            return super().visit_call(call)
        args = [self.visit(arg) for arg in call.args]
        return Substitute(dict(zip(call.op.params, args, strict=True))).visit(call.op.body)
