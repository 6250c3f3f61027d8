"""Regions: what another compiler is to have, annotated, merged, and cut out as functions; "bring your own codegen".

An annotated expression has `annotation.compiler_begin` where values enter a region and `annotation.compiler_end` where
they leave it. A region is what hangs together between them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tvm_neuron.relay.ir.expr import Call, Function, Op
from tvm_neuron.relay.ir.functor import ExprMutator, children, post_order
from tvm_neuron.relay.op.annotation import compiler_begin, compiler_end

BEGIN, END = "annotation.compiler_begin", "annotation.compiler_end"


def is_mark(expr: Any, name: str) -> bool:
    """Whether `expr` is where a region begins, or where it ends."""
    return isinstance(expr, Call) and isinstance(expr.op, Op) and str(expr.op.name) == name


def begin(expr: Any, compiler: str) -> Call:
    """The value as it enters a region, typed."""
    return _typed(compiler_begin(expr, compiler), expr)


def end(expr: Any, compiler: str) -> Call:
    """The value as it leaves a region, typed."""
    return _typed(compiler_end(expr, compiler), expr)


def _typed(mark: Call, expr: Any) -> Call:
    return Call(mark.op, mark.args, mark.attrs, mark.type_args, mark.span, ty=expr.ty)


@dataclass
class Region:
    """A region: `number` counts the marks before its first one, `outputs` are the values that leave it."""

    compiler: str
    number: int
    nodes: set[Any] = field(default_factory=set)
    outputs: list[Any] = field(default_factory=list)


def regions_of(expr: Any) -> list[Region]:
    """The regions of an annotated expression, in the order in which they begin."""
    found: dict[Any, Region] = {}
    count = 0
    for node in post_order(expr, outside_functions):
        if is_mark(node, BEGIN):
            found[node] = Region(str(node.attrs.compiler), count, {node})
            count += 1
            continue
        inner = [child for child in outside_functions(node) if child in found]
        if is_mark(node, END):
            for child in inner:
                _add_output(found[child], child)
            continue
        if inner:
            whole = min((found[child] for child in inner), key=lambda region: region.number)
            for child in inner:
                _join(found, whole, found[child])
            whole.nodes.add(node)
            found[node] = whole
    unique = {id(region): region for region in found.values()}
    return sorted(unique.values(), key=lambda region: region.number)


def outside_functions(node: Any) -> list[Any]:
    """What a node is made of; the bodies of functions that are called in place are their own affair."""
    if isinstance(node, Call):
        return list(node.args)
    return [] if isinstance(node, Function) else children(node)


def _add_output(region: Region, value: Any) -> None:
    if value not in region.outputs:
        region.outputs.append(value)


def _join(found: dict[Any, Region], whole: Region, part: Region) -> None:
    if part is whole:
        return
    whole.nodes |= part.nodes
    for value in part.outputs:
        _add_output(whole, value)
    for node in part.nodes:
        found[node] = whole


def merged(func: Function) -> Function:
    """Regions of one compiler that feed each other as one, where no value would have to leave it and come back."""
    regions = regions_of(func.body)
    region_of: dict[Any, Region] = {node: region for region in regions for node in region.nodes}
    readers: dict[Any, list[Any]] = {}
    order = post_order(func.body, outside_functions)
    for node in order:
        for child in outside_functions(node):
            readers.setdefault(child, []).append(node)
    for mark in order:
        if is_mark(mark, BEGIN) and is_mark(mark.args[0], END) and mark.attrs.compiler == mark.args[0].attrs.compiler:
            reader, maker = region_of[mark], region_of.get(mark.args[0].args[0])
            if maker is not None and maker is not reader and not _is_detour(maker, reader, readers, region_of):
                _join(region_of, maker, reader)

    class Joined(ExprMutator):
        def visit_call(self, call: Call) -> Any:
            if is_mark(call, BEGIN) and is_mark(call.args[0], END):
                value = call.args[0].args[0]
                if region_of.get(value) is region_of[call]:
                    return self.visit(value)
            return super().visit_call(call)

    return Joined().visit(func)


def _is_detour(
    maker: Region, reader: Region, readers: dict[Any, list[Any]], region_of: dict[Any, Region]
) -> bool:
    """Whether a value of `maker` also reaches `reader` through something between them."""
    own = (maker, reader)
    pending = [each for node in maker.nodes for each in _beyond(node, readers, region_of, own)]
    seen: set[Any] = set()
    while pending:
        node = pending.pop()
        if node in seen:
            continue
        seen.add(node)
        region = region_of.get(node)
        if region is reader:
            return True
        around = region.nodes if region is not None else {node}
        seen |= around
        pending += [each for inner in around for each in readers.get(inner, []) if each not in around]
    return False


def _beyond(
    node: Any, readers: dict[Any, list[Any]], region_of: dict[Any, Region], own: tuple[Region, ...]
) -> Iterator[Any]:
    """What reads a node from outside of both regions, marks passed over."""
    for reader in readers.get(node, []):
        if region_of.get(reader) in own:
            continue
        if is_mark(reader, END):
            yield from (each for each in readers.get(reader, []) if region_of.get(each) not in own)
        else:
            yield reader
