"""What is drawn of a module: nodes and edges, what finds them (a parser), and what draws them (graph and plotter)."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tvm.ir import GlobalVar

from tvm_neuron.relay.ir.expr import Call, Constant, Function, If, Let, Op, Tuple, TupleGetItem, Var
from tvm_neuron.relay.ir.functor import children
from tvm_neuron.relay.ir.ty import TensorType


@dataclass(frozen=True)
class VizNode:
    """A node: what identifies it, its kind, and details of it, a line each."""

    identity: str
    type_name: str
    detail: str = ""


@dataclass(frozen=True)
class VizEdge:
    """An edge between the nodes of these identities: from what is used to what uses it."""

    start: str
    end: str


class VizParser(ABC):
    """Finds the node and the edges of an expression."""

    @abstractmethod
    def get_node_edges(
        self, node: Any, relay_param: Mapping[str, Any], node_to_id: Mapping[Any, str]
    ) -> tuple[VizNode | None, Sequence[VizEdge]]:
        """The node of an expression, or None if it is not to be drawn, and the edges that end there."""


class VizGraph(ABC):
    """The picture of one function."""

    @abstractmethod
    def node(self, viz_node: VizNode) -> None:
        """Adds a node; those that it uses have been added before."""

    @abstractmethod
    def edge(self, viz_edge: VizEdge) -> None:
        """Adds an edge."""


class Plotter(ABC):
    """Makes pictures of functions, and draws them all."""

    @abstractmethod
    def create_graph(self, name: str) -> VizGraph:
        """The picture of the function `name`, empty yet."""

    @abstractmethod
    def render(self, filename: str | None = None) -> None:
        """Draws what was created, into a file or on the terminal."""


class DefaultVizParser(VizParser):
    """A node for every expression, with an edge from each that it is made of."""

    def get_node_edges(
        self, node: Any, relay_param: Mapping[str, Any], node_to_id: Mapping[Any, str]
    ) -> tuple[VizNode | None, Sequence[VizEdge]]:
        """See `VizParser`; operators are part of their calls."""
        if isinstance(node, Op | GlobalVar):
            return None, []
        kind, detail = _described(node, relay_param)
        identity = node_to_id[node]
        used = [part for part in children(node) if part in node_to_id and not isinstance(part, Op | GlobalVar)]
        return VizNode(identity, kind, detail), [VizEdge(node_to_id[part], identity) for part in used]


def _described(node: Any, params: Mapping[str, Any]) -> tuple[str, str]:
    """The kind of an expression, and its details."""
    match node:
        case Var():
            ty = node.type_annotation
            known = f"\nshape: {tuple(map(str, ty.shape))}\ndtype: {ty.dtype}" if isinstance(ty, TensorType) else ""
            return "Var(Param)" if node.name_hint in params else "Var(Input)", f"name_hint: {node.name_hint}{known}"
        case Constant():
            return "Const", f"shape: {tuple(node.data.shape)}, dtype: {node.data.dtype}"
        case Call():
            attrs = node.attrs.as_dict()
            name = getattr(node.op, "name", None) or getattr(node.op, "name_hint", "function")
            return f"Call {name}", "\n".join(f"{key}: {value}" for key, value in attrs.items())
        case Function():
            return "Func", ", ".join(str(param.name_hint) for param in node.params)
        case TupleGetItem():
            return "TupleGetItem", f"idx: {node.index}"
        case Tuple():
            return "Tuple", ""
        case Let():
            return "Let", "(var, val, body)"
        case If():
            return "If", "(cond, true, false)"
    return type(node).__name__, ""
