"""Symbol: the graph in a `-symbol.json`, as plain values."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tvm_neuron.errors import ModelError

Output = tuple[int, int]
"""A node, by its number, and which of its outputs."""

VARIABLE = "null"


@dataclass(frozen=True)
class Node:
    """An operator, or a variable; `attributes` as MXNet writes them, all of them text; loops have `subgraphs`."""

    op: str
    name: str
    attributes: Mapping[str, str]
    inputs: tuple[Output, ...]
    subgraphs: tuple["Symbol", ...] = ()


@dataclass(frozen=True)
class Symbol:
    """Nodes, each after those that it reads, and the outputs of the whole."""

    nodes: tuple[Node, ...]
    heads: tuple[Output, ...]


def parse_symbol(text: str | bytes, where: str) -> Symbol:
    """The symbol that JSON says.

    Raises:
        ModelError: it is no symbol of MXNet, or a node reads what does not come before it.
    """
    try:
        return _symbol(json.loads(text), where)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ModelError(f"{where} is no symbol of MXNet: it has no nodes and heads in JSON as MXNet 1 does") from error


def _symbol(raw: Any, where: str) -> Symbol:
    nodes = tuple(_node(each, where) for each in raw["nodes"])
    found = Symbol(nodes, tuple(_output(each) for each in raw["heads"]))
    for number, node in enumerate(nodes):
        if not all(0 <= read < number for read, _ in node.inputs):
            raise ModelError(f"{where}: node '{node.name}' reads a node that does not come before it")
    if not found.heads or not all(0 <= read < len(nodes) for read, _ in found.heads):
        raise ModelError(f"{where}: the heads are none of its {len(nodes)} nodes")
    return found


def _node(raw: Any, where: str) -> Node:
    attributes = {**raw.get("param", {}), **raw.get("attr", {}), **raw.get("attrs", {})}  # as MXNet 0.8, 0.9, 1 have it
    if not all(isinstance(value, str) for value in (raw["op"], raw["name"], *attributes.values())):
        raise TypeError
    inputs = tuple(_output(each) for each in raw["inputs"])
    subgraphs = tuple(_symbol(each, where) for each in raw.get("subgraphs", ()))
    return Node(raw["op"], raw["name"], attributes, inputs, subgraphs)


def _output(raw: Any) -> Output:
    node, output = raw[:2]
    return int(node), int(output)
