"""Arithmetic on tensors and constants, each broadcast in any way, as either operand: c / x * s, 1 / x / y."""

from typing import Any

import numpy as np
import onnx
from hypothesis import example, given, settings
from hypothesis import strategies as st
from onnx import helper

from tests.codegen.on_core import check
from tests.onnx_models import Arrays, make_model

UNARY, BINARY = ("Reciprocal", "Sqrt", "Relu"), ("Div", "Mul", "Add", "Max", "Min")
PARTS = {"whole": (1, 1, 1), "channels": (0, 1, 0), "row": (0, 0, 1), "image": (1, 0, 0), "one": (0, 0, 0)}
SHAPES = [(2, 9, 7), (1, 5, 1), (6, 1, 1), (1, 1, 8), (1, 1, 1)]
LEAVES = [f"{kind}_{part}" for kind in "xc" for part in PARTS] + ["c_number"]

Tree = str | tuple[Any, ...]


def model_of(tree: Tree, shape: tuple[int, ...]) -> tuple[onnx.ModelProto, Arrays]:
    """The expression, spread to the shape, and inputs for it: all numbers lie well above zero."""
    nodes: list[onnx.NodeProto] = []

    def emit(part: Tree) -> str:
        if isinstance(part, str):
            return part
        operands = [emit(operand) for operand in part[1:]]
        nodes.append(helper.make_node(part[0], operands, [f"t{len(nodes)}"], name=f"n{len(nodes)}"))
        return nodes[-1].output[0]

    nodes.append(helper.make_node("Expand", [emit(tree), "shape"], ["y"], name="expand"))
    rng = np.random.default_rng(1)
    used = [name for name in LEAVES if any(name in node.input for node in nodes)]
    values = {}
    for name in used:
        kept = PARTS.get(name[2:])
        extents = () if kept is None else tuple(n if keep else 1 for n, keep in zip(shape, kept, strict=True))
        values[name] = rng.uniform(0.5, 2, extents).astype(np.float32)
    inputs = {name: value for name, value in values.items() if name[0] == "x"}
    weights = {name: value for name, value in values.items() if name[0] == "c"} | {"shape": np.int64(shape)}
    return make_model(nodes, {name: value.shape for name, value in inputs.items()}, ["y"], weights), inputs


def _grow(inner: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    unary = st.tuples(st.sampled_from(UNARY), inner)
    return unary | st.tuples(st.sampled_from(BINARY), inner, inner)


TREES = st.recursive(st.sampled_from(LEAVES), _grow, max_leaves=5).filter(lambda tree: "x_" in str(tree))


@settings(max_examples=8)
@example(("Div", ("Div", "c_number", "x_whole"), "c_number"), (1, 5, 1), "inf1")
@example(("Add", ("Div", "c_number", "x_one"), ("Div", "c_number", "x_channels")), (2, 9, 7), "inf2")
@given(TREES, st.sampled_from(SHAPES), st.sampled_from(["inf1", "inf2"]))
def test_expressions(tree: Tree, shape: tuple[int, ...], chip: str) -> None:
    """In float32: up to nine operations, some of which take a few units of the last place."""
    check(*model_of(tree, shape), chip, "none", roundings=32)
