"""Constants with a matrix for each element of a batch: all on the core, beside onnxruntime."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from onnx import ModelProto, helper

from tests.codegen.on_core import PRECISIONS, check, on_core
from tests.onnx_models import make_model
from tvm_neuron.codegen.passes.cut_batches import MOST
from tvm_neuron.errors import PlacementError

Shape = tuple[int, ...]


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(
    batches=st.sampled_from(
        [((3,), (3,)), ((2, 3), (3,)), ((1,), (4,)), ((2, 3), (2, 3)), ((2, 1), (1, 3)), ((), (3,))]
    ),
    sizes=st.tuples(st.integers(1, 140), st.integers(1, 200), st.integers(1, 140)),
    is_left=st.booleans(),
    chosen=st.sampled_from(PRECISIONS),
)
@example(batches=((40,), (40,)), sizes=(1, 96, 100), is_left=False, chosen=("inf2", "all"))
@example(batches=((3,), (3,)), sizes=(50, 1, 7), is_left=False, chosen=("inf1", "all"))
def test_matrices_of_a_batch(
    batches: tuple[Shape, Shape], sizes: tuple[int, int, int], is_left: bool, chosen: tuple[str, str]
) -> None:
    m, k, n = sizes
    x, w = ((m, k), (k, n)) if not is_left else ((k, n), (m, k))
    feeds, weights = {"x": normal(*batches[0], *x)}, {"w": normal(*batches[1], *w)}
    node = helper.make_node("MatMul", ["w", "x"] if is_left else ["x", "w"], ["y"])
    check(make_model([node], {"x": feeds["x"].shape}, ["y"], weights), feeds, *chosen)


@pytest.mark.parametrize("chosen", PRECISIONS)
@pytest.mark.parametrize(
    ("equation", "x", "w"),
    [
        ("bhwc,hkc->bhwk", (4, 7, 6, 32), (7, 9, 32)),  # relative positions of SAM and ViTDet: by rows, and by columns
        ("bhwc,wkc->bhwk", (4, 7, 6, 32), (6, 9, 32)),
        ("bmhk,hkn->bmn", (2, 9, 4, 16), (4, 16, 24)),  # heads summed in an output's projection
        ("bmk,hkn->bhmn", (2, 9, 40), (4, 40, 16)),
        ("bmhk,hkn->bmhn", (2, 9, 4, 16), (4, 16, 24)),
        ("bk,bkn->bn", (5, 40), (5, 40, 16)),
        ("bhkn,bhk->bhn", (3, 2, 32, 50), (3, 2, 32)),  # a query that is a parameter, once for each image
    ],
)
def test_einsum(equation: str, x: Shape, w: Shape, chosen: tuple[str, str]) -> None:
    node = helper.make_node("Einsum", ["x", "w"], ["y"], equation=equation)
    check(make_model([node], {"x": x}, ["y"], {"w": normal(*w)}), {"x": normal(*x)}, *chosen)


@pytest.mark.parametrize("chosen", PRECISIONS)
def test_experts_amid_other_layers(chosen: tuple[str, str]) -> None:
    """Two layers of each expert, summed by weights of a gate."""
    weights = {"gate": normal(32, 4), "up": normal(4, 32, 48), "down": normal(4, 48, 32)}
    nodes = [
        helper.make_node("MatMul", ["x", "gate"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["shares"], axis=-1),
        helper.make_node("Transpose", ["shares"], ["turned"], perm=[1, 0]),
        helper.make_node("Unsqueeze", ["turned", "last"], ["of_each"]),
        helper.make_node("MatMul", ["x", "up"], ["wide"]),
        helper.make_node("Relu", ["wide"], ["some"]),
        helper.make_node("MatMul", ["some", "down"], ["narrow"]),
        helper.make_node("Mul", ["narrow", "of_each"], ["weighted"]),
        helper.make_node("ReduceSum", ["weighted", "zero"], ["y"], keepdims=0),
    ]
    constants = {"last": np.array([2]), "zero": np.array([0]), **weights}
    check(make_model(nodes, {"x": (20, 32)}, ["y"], constants), {"x": normal(20, 32) / 8}, *chosen, roundings=16)


@pytest.mark.parametrize("chosen", PRECISIONS)
def test_groups_of_what_is_no_image(chosen: tuple[str, str]) -> None:
    """A convolution of one pixel in groups, behind a Reshape: three output channels for each element of a row."""
    weights = {"shape": np.array([1, 16, 1, 1]), "w": normal(48, 1, 1, 1), "b": normal(48)}
    nodes = [
        helper.make_node("Reshape", ["x", "shape"], ["image"]),
        helper.make_node("Conv", ["image", "w", "b"], ["sums"], group=16, kernel_shape=[1, 1]),
        helper.make_node("Relu", ["sums"], ["y"]),
    ]
    check(make_model(nodes, {"x": (4, 4)}, ["y"], weights), {"x": normal(4, 4)}, *chosen)


@pytest.mark.parametrize("chosen", PRECISIONS)
@pytest.mark.parametrize(("batch", "length", "width"), [(15, 30, 100), (2, 7, 16), (40, 12, 130)])
def test_scores_of_an_additive_attention(batch: int, length: int, width: int, chosen: tuple[str, str]) -> None:
    """A product with a vector, each element of whose result is of another token; then their softmax weighs tokens."""
    weights = {"w": normal(width, width) / width**0.5, "u": normal(width) / width**0.5, "last": np.array([2])}
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["wide"]),
        helper.make_node("Tanh", ["wide"], ["hidden"]),
        helper.make_node("MatMul", ["hidden", "u"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["shares"], axis=1),
        helper.make_node("Unsqueeze", ["shares", "last"], ["of_each"]),
        helper.make_node("Mul", ["of_each", "x"], ["weighted"]),
        helper.make_node("ReduceSum", ["weighted", "one"], ["y"], keepdims=0),
    ]
    model = make_model(nodes, {"x": (batch, length, width)}, ["y"], {"one": np.array([1]), **weights})
    check(model, {"x": normal(batch, length, width)}, *chosen, roundings=16)


def _many(count: int) -> ModelProto:
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    return make_model([node], {"x": (count, 1, 4)}, ["y"], {"w": normal(count, 4, 5)})


@pytest.mark.slow
def test_more_than_kernels_are_made_of() -> None:
    check(_many(MOST), {"x": normal(MOST, 1, 4)}, "inf2", "all")
    with pytest.raises(PlacementError, match="its weights change along the free axes"):
        on_core(_many(MOST + 1), {"x": normal(MOST + 1, 1, 4)}, "inf2")
