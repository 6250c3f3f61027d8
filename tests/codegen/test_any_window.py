"""Convolutions and pools of any rank, window, dilation, stride, padding, groups: taps, even all, may lie in padding."""

from dataclasses import dataclass

import numpy as np
import onnx
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from onnx import helper

from tests.codegen.on_core import PRECISIONS, check
from tests.onnx_models import Arrays, make_model

KINDS = ("Conv", "ConvTranspose", "MaxPool", "AveragePool")


@dataclass(frozen=True)
class Dim:
    """One dimension of the image and how the window moves along it."""

    size: int
    window: int
    dilation: int = 1
    stride: int = 1
    before: int = 0
    after: int = 0

    @property
    def reach(self) -> int:
        """From the first element that the window touches to behind the last one."""
        return (self.window - 1) * self.dilation + 1

    def outputs(self, kind: str) -> int:
        """How many there are along the dimension; below 1 if the padded image is too small."""
        if kind == "ConvTranspose":
            return (self.size - 1) * self.stride + self.reach - self.before - self.after
        return (self.size + self.before + self.after - self.reach) // self.stride + 1


@dataclass(frozen=True)
class Case:
    """One such operator behind another one, or on the input itself."""

    kind: str
    dims: tuple[Dim, ...]
    groups: int = 1
    inputs_each: int = 16
    outputs_each: int = 8
    images: int = 1
    is_input: bool = True

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the input."""
        return (self.images, self.groups * self.inputs_each, *(dim.size for dim in self.dims))

    def model(self) -> onnx.ModelProto:
        """The model, from "x" to "y"."""
        rng = np.random.default_rng(1)
        pads = [*(dim.before for dim in self.dims), *(dim.after for dim in self.dims)]
        attributes = {
            "kernel_shape": [dim.window for dim in self.dims], "strides": [dim.stride for dim in self.dims],
            "dilations": [dim.dilation for dim in self.dims], "pads": pads,
        }  # fmt: skip
        window = tuple(dim.window for dim in self.dims)
        weights: Arrays = {}
        if self.kind in ("Conv", "ConvTranspose"):
            channels = (self.groups * self.outputs_each, self.inputs_each)
            if self.kind == "ConvTranspose":
                channels = (self.groups * self.inputs_each, self.outputs_each)
            weights["w"] = rng.standard_normal((*channels, *window)).astype(np.float32)
            attributes["group"] = self.groups
        before = [] if self.is_input else [helper.make_node("Sigmoid", ["x"], ["s"], name="before")]
        data = "x" if self.is_input else "s"
        node = helper.make_node(self.kind, [data, *weights], ["y"], name="window", **attributes)
        return make_model([*before, node], {"x": self.shape}, ["y"], weights, opset=19)

    def inputs(self) -> Arrays:
        """Random ones."""
        return {"x": np.random.default_rng(2).standard_normal(self.shape).astype(np.float32)}


@st.composite
def cases(draw: st.DrawFn) -> Case:
    kind = draw(st.sampled_from(KINDS))
    dims = []
    for _ in range(draw(st.integers(1, 3))):
        dim = Dim(
            draw(st.integers(1, 9)), draw(st.integers(1, 4)), draw(st.sampled_from([1, 2, 3, 6, 12])),
            draw(st.sampled_from([1, 2, 3, 5])),
        )  # fmt: skip
        most = dim.window - 1 if "Pool" in kind else dim.reach + 1  # onnxruntime refuses pools with more
        pads = draw(st.integers(0, most)), draw(st.integers(0, most))
        dims.append(Dim(dim.size, dim.window, dim.dilation, dim.stride, *pads))
    assume(all(dim.outputs(kind) > 0 for dim in dims))
    each = st.sampled_from([1, 2, 5, 8, 17])
    return Case(
        kind, tuple(dims), draw(st.sampled_from([1, 1, 2, 4, 12])), draw(each), draw(each), draw(st.integers(1, 2)),
        draw(st.booleans()),
    )  # fmt: skip


@pytest.mark.slow
@settings(max_examples=10)
@example(Case("Conv", (Dim(7, 3, 12, 1, 12, 12),) * 2), ("inf1", "all"))  # of ASPP
@example(Case("Conv", (Dim(2, 4, 6, 3, 19, 18), Dim(5, 3, 1, 1, 4, 2)), 4, 2), ("inf2", "none"))  # misses the image
@example(Case("ConvTranspose", (Dim(8, 5, 1, 30, 17, 17),) * 2, 1, 64, 4), ("inf1", "all"))  # runs in tiles of rows
@example(Case("ConvTranspose", (Dim(2, 4, 12, 1, 36, 0), Dim(4, 3, 6, 5, 14, 12)), 4, 2), ("inf1", "all"))  # much SBUF
@given(cases(), st.sampled_from(PRECISIONS))
def test_any_window(case: Case, precision: tuple[str, str]) -> None:
    check(case.model(), case.inputs(), *precision)
