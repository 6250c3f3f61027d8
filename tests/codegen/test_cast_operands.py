"""What the PE array multiplies may have been cast from any dtype, moved since, and be read by others as it was."""

from dataclasses import dataclass

import numpy as np
import onnx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from onnx import helper

from tests.codegen.on_core import PRECISIONS, check
from tests.onnx_models import Arrays, make_model

SHAPE = (2, 6, 8, 8)
SOURCES = ("bool", "uint8", "int8", "int32", "int64", "float16", "float32")
MOVES = {
    "none": [],
    "transpose": [helper.make_node("Transpose", ["made"], ["moved"], perm=[0, 1, 3, 2])],
    "pad": [helper.make_node("Pad", ["made", "pads"], ["moved"])],
    "concat": [helper.make_node("Concat", ["made", "made"], ["moved"], axis=3)],
    "reshape": [helper.make_node("Reshape", ["made", "shape"], ["moved"])],
}
READERS = {
    "Conv": ["w"], "ConvTranspose": ["wt"], "MatMul": ["square"], "Resize": ["", "scales"], "CumSum": ["axis"],
    "product": ["moved"], "AveragePool": [], "sum": ["axes"],
}  # fmt: skip
ATTRIBUTES = {
    "Conv": {"pads": [1, 1, 1, 1]}, "Resize": {"mode": "linear"}, "AveragePool": {"kernel_shape": [2, 2]},
    "sum": {"keepdims": 0},
}  # fmt: skip
TYPES = {"product": "Mul", "sum": "ReduceSum"}


@dataclass(frozen=True)
class Case:
    """An integer, truth or float that is computed or an input, cast, moved and multiplied."""

    source: str
    target: str
    is_computed: bool
    move: str
    reader: str
    is_read_else: bool

    def model(self) -> onnx.ModelProto:
        """The model, from "x" to "y" (and "z")."""
        of_type = {"bool": "Not", "float16": "Abs", "float32": "Abs"}.get(self.source, "BitwiseNot")
        compute = [helper.make_node(of_type, ["x"], ["given"])]
        given = "given" if self.is_computed else "x"
        dtype = helper.np_dtype_to_tensor_dtype(np.dtype(self.target))
        nodes = [*(compute if self.is_computed else ()), helper.make_node("Cast", [given], ["made"], to=dtype)]
        nodes += MOVES[self.move]
        moved = "moved" if MOVES[self.move] else "made"
        if self.reader == "product":  # both operands are cast, along different axes
            turned = helper.make_node("Transpose", [moved], ["turned"], perm=[0, 1, 3, 2])
            nodes += [turned, helper.make_node("MatMul", [moved, "turned"], ["y"])]
        else:
            of_type = TYPES.get(self.reader, self.reader)
            operands = [moved, *READERS[self.reader]]
            nodes.append(helper.make_node(of_type, operands, ["y"], **ATTRIBUTES.get(self.reader, {})))
        outputs = ["y"]
        if self.is_read_else:
            nodes.append(helper.make_node("Identity", [given], ["z"]))
            outputs.append("z")
        for number, node in enumerate(nodes):
            node.name = f"n{number}"
        rng = np.random.default_rng(1)
        width = {"concat": 16, "pad": 10, "reshape": 4}.get(self.move, 8)
        weights = {
            "w": rng.standard_normal((10, 6, 3, 3)), "wt": rng.standard_normal((6, 10, 2, 2)),
            "square": rng.standard_normal((width, 5)),
        }  # fmt: skip
        numbers = {
            "pads": np.int64([0, 0, 1, 1, 0, 0, 1, 1]), "shape": np.int64([2, 6, 16, 4]), "axis": np.int64(2),
            "axes": np.int64([2, 3]),
            "scales": np.float32([1, 1, 2, 2]),
        }  # fmt: skip
        used = {name for node in nodes for name in node.input}
        every = {name: array.astype(self.target) for name, array in weights.items()} | numbers
        dtypes = {"x": helper.np_dtype_to_tensor_dtype(np.dtype(self.source))}
        return make_model(nodes, {"x": SHAPE}, outputs, {n: a for n, a in every.items() if n in used}, dtypes=dtypes)

    def inputs(self) -> Arrays:
        """Random ones; whole numbers small enough for sums of products in float16."""
        rng = np.random.default_rng(2)
        if self.source.startswith("float"):
            return {"x": rng.standard_normal(SHAPE).astype(self.source)}
        x = rng.integers(0, 2 if self.source == "bool" else 20, SHAPE).astype(self.source)
        return {"x": ~x if self.is_computed else x}


CASES = st.builds(
    Case, st.sampled_from(SOURCES), st.sampled_from(["float32", "float16"]), st.booleans(),
    st.sampled_from(list(MOVES)), st.sampled_from(list(READERS)), st.booleans(),
)  # fmt: skip


@pytest.mark.slow
@settings(max_examples=8)
@example(Case("uint8", "float32", False, "none", "Conv", False), ("inf1", "all"))
@example(Case("bool", "float32", False, "none", "CumSum", False), ("inf2", "none"))
@example(Case("float16", "float32", False, "none", "Conv", False), ("inf2", "none"))  # multiplied in float16
@example(Case("float32", "float16", False, "none", "product", False), ("inf1", "all"))  # in bfloat16
@given(CASES.filter(lambda case: case.source != case.target), st.sampled_from(PRECISIONS))
def test_casts_of_operands(case: Case, precision: tuple[str, str]) -> None:
    check(case.model(), case.inputs(), *precision)
