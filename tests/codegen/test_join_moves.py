"""join_moves: what layouts move is read from where it lay before another move; sign is two comparisons."""

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.codegen.on_core import check, on_core
from tests.onnx_models import make_model
from tests.stages.networks import compile_model
from tvm_neuron.isa import DmaCopy, Select


def _weighted(tokens: int, chosen: int) -> onnx.ModelProto:
    """Each token for each of its choices times a matrix, then times a number that is one row of another tensor."""
    rng = np.random.default_rng(tokens)
    weights = {
        "w": rng.standard_normal((48, 40)).astype(np.float32) / 7,
        "v": rng.standard_normal((48, chosen)).astype(np.float32) / 7,
        "column": np.array([tokens * chosen, 1]),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "v"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["scores"], axis=1),
        helper.make_node("Reshape", ["scores", "column"], ["score"]),
        helper.make_node("MatMul", ["d", "w"], ["product"]),
        helper.make_node("Mul", ["product", "score"], ["y"]),
    ]
    return make_model(nodes, {"x": (tokens, 48), "d": (tokens * chosen, 48)}, ["y"], weights)


@pytest.mark.parametrize(("tokens", "chosen"), [(64, 2), (40, 3)])
def test_rows_one_behind_the_other_are_spread_from_where_they_lie_side_by_side(tokens: int, chosen: int) -> None:
    model = _weighted(tokens, chosen)
    rng = np.random.default_rng(chosen)
    shapes = {"x": (tokens, 48), "d": (tokens * chosen, 48)}
    check(model, {n: rng.standard_normal(s).astype(np.float32) for n, s in shapes.items()}, "inf2", "all")
    program = compile_model(model, "neuron/inf2").program
    copies = [i for _, i in program.instructions() if isinstance(i, DmaCopy)]
    assert copies
    assert not [tensor.name for tensor in program.tensors if tensor.kind == "scratch"]


def test_sign_chooses_nothing() -> None:
    model = make_model([helper.make_node("Sign", ["x"], ["y"])], {"x": (6, 7)}, ["y"], {})
    x = np.random.default_rng(3).standard_normal((6, 7)).astype(np.float32)
    x[0] = [0.0, -0.0, np.inf, -np.inf, 1e-38, -1e-38, np.nan]
    (found,) = on_core(model, {"x": x}, "inf2")
    np.testing.assert_array_equal(found, np.nan_to_num(np.sign(x)))
    assert not any(isinstance(i, Select) for _, i in compile_model(model, "neuron/inf2").program.instructions())
