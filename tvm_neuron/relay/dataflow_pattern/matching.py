"""Whether an expression looks like a pattern, and which of its parts stand for which parts of the pattern."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from tvm_neuron.relay.ir.expr import Attrs, Call, Constant, Function, Op
from tvm_neuron.relay.ir.functor import children, post_order


class Pattern(Protocol):
    """What a matcher asks of a pattern; `is_part` says whether what it matches belongs to a match, or feeds it."""

    is_part: bool

    def accepts(self, expr: Any, matcher: "Matcher") -> bool:
        """Whether an expression looks like it."""


def closed_children(node: Any) -> list[Any]:
    """What a node is made of, but for functions that a pattern was made before."""
    is_closed = isinstance(node, Function) and node.attrs and "PartitionedFromPattern" in node.attrs
    return [] if is_closed else children(node)


class Matcher:
    """Matches patterns at places in one expression, of which it knows who reads what."""

    def __init__(self, root: Any) -> None:
        self.order = post_order(root, closed_children)
        self.readers: dict[Any, set[Any]] = {}
        for node in self.order:
            for child in closed_children(node):
                self.readers.setdefault(child, set()).add(node)
        self.found: list[tuple[Pattern, Any]] = []
        self._memo: dict[Pattern, Any] = {}

    def matches(self, pattern: Pattern, expr: Any) -> bool:
        """Whether `expr` looks like the pattern; then `found` says what stands for what."""
        self.forget(0)
        return self.takes(pattern, expr)

    def takes(self, pattern: Pattern, expr: Any) -> bool:
        """The same of a part of the pattern: what it stood for before in this match, it has to stand for again."""
        if pattern in self._memo:
            return is_same(self._memo[pattern], expr)
        mark = len(self.found)
        if pattern.accepts(expr, self):
            self._memo[pattern] = expr
            self.found.append((pattern, expr))
            return True
        self.forget(mark)
        return False

    def forget(self, mark: int) -> list[tuple[Pattern, Any]]:
        """Takes back what was found since `found` had `mark` entries, and returns it."""
        gone, self.found = self.found[mark:], self.found[:mark]
        for pattern, _ in gone:
            self._memo.pop(pattern, None)
        return gone

    def note(self, found: Iterable[tuple[Pattern, Any]]) -> None:
        """Adds parts to a match whose patterns may stand for something else at other places of it."""
        self.found += found

    def parts(self) -> set[Any]:
        """The expressions that belong to the match."""
        return {expr for pattern, expr in self.found if pattern.is_part and not isinstance(expr, Op)}


@dataclass(frozen=True)
class Match:
    """A match: its root, all its expressions, and for each pattern what stands for it."""

    root: Any
    parts: frozenset[Any]
    found: tuple[tuple[Pattern, Any], ...]


def matches_in(pattern: Pattern, root: Any) -> list[Match]:
    """The matches in an expression that don't overlap, and of which nothing but the root is read from outside."""
    matcher = Matcher(root)
    taken: set[Any] = set()
    result = []
    for node in reversed(matcher.order):
        if node in taken or not matcher.matches(pattern, node):
            continue
        parts = matcher.parts() | {node}
        inner = [part for part in parts if part is not node and not isinstance(part, Constant)]
        is_read = any(not matcher.readers.get(part, set()) <= parts for part in inner if not part.same_as(node))
        if is_read or taken.intersection(inner):
            continue
        taken.update(inner)
        taken.add(node)
        result.append(Match(node, frozenset(parts), tuple(matcher.found)))
    return result


def is_same(one: Any, other: Any) -> bool:
    """Whether two are one expression, or the same operator."""
    return one == other if isinstance(one, Op) else bool(one.same_as(other))


def attributes_of(expr: Any) -> dict[str, Any]:
    """The attributes of a call or a function."""
    if isinstance(expr, Call):
        return expr.attrs.as_dict() if isinstance(expr.attrs, Attrs) else {}
    return dict(expr.attrs.items()) if isinstance(expr, Function) and expr.attrs else {}
