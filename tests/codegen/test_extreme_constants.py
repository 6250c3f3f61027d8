"""Chains of steps by constants at the ends of float32: gathered into one step only where that changes nothing."""

import numpy as np
import pytest
from onnx import helper

from tests.codegen.on_core import on_core
from tests.onnx_models import Arrays, make_model

OPS = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide}
NUMBERS = np.array([0, 1e-45, 1e-40, -2e-38, 1e-33, 1e-30, 1e-20, 0.5, -3, 1e20, -1e30, 3e38, np.inf, -np.inf], "f")
OF_VECTORS = NUMBERS[(NUMBERS == 0) | (np.abs(NUMBERS) >= 2.0**-110)]
"""The PE array, which spreads vectors over partitions, loses digits of smaller ones: of their parts in bfloat16."""
X = np.array([[0, -0.0, 1, -2.5, 1e-30, 1e30, -1e38, np.inf], [np.nan, 3, -1e-20, 1e20, 7, -np.inf, 1e-33, -8]], "f")
CHAINS = 12


@pytest.mark.parametrize("seed", range(2))
def test_steps_overflow_only_where_the_model_does(seed: int) -> None:
    """In float32, step by step, or without rounding between the steps, whichever is nearer."""
    rng = np.random.default_rng(seed)
    nodes, constants, expected = [], Arrays(), []
    for chain in range(CHAINS):
        values, name = (X, X.astype(np.float64), np.abs(X, dtype=np.float64)), "x"
        for step in range(rng.integers(1, 4)):
            op, shape = str(rng.choice(list(OPS))), [(), (2, 1), (8,)][rng.integers(3)]
            constant, result = np.asarray(rng.choice(OF_VECTORS if shape else NUMBERS, shape)), f"y{chain}.{step}"
            turn = -1 if op != "Div" and rng.random() < 0.3 else 1
            nodes.append(helper.make_node(op, [name, f"c{result}"][::turn], [result], name=result))
            constants[f"c{result}"], name = constant, result
            values = _after(OPS[op], values, constant, turn)
        expected.append((name, *values))
    model = make_model(nodes, {"x": X.shape}, [name for name, *_ in expected], constants)
    for actual, (name, stepwise, exact, size) in zip(on_core(model, {"x": X}, "inf2", "none"), expected, strict=True):
        with np.errstate(all="ignore"):
            whole, apart = exact.astype(np.float32), 2.0**-21 * np.where(np.isfinite(size), size, 0) + 2.0**-126
            same = [(actual == wanted) | (np.isnan(actual) & np.isnan(wanted)) for wanted in (stepwise, whole)]
            near = [np.abs(actual - np.float64(wanted)) <= apart for wanted in (stepwise, exact)]
        assert np.logical_or.reduce([*same, *near]).all(), (name, actual, stepwise, whole)


def _after(op: np.ufunc, values: tuple[np.ndarray, ...], constant: np.ndarray, turn: int) -> tuple[np.ndarray, ...]:
    """In float32, in float64, and the size of the largest term, by whose rounding a result may be off."""
    stepwise, exact, size = values
    with np.errstate(all="ignore"):
        wide = constant.astype(np.float64)
        grown = op(size, np.abs(wide)) if op in (np.multiply, np.divide) else np.maximum(size, np.abs(wide))
        return op(*[stepwise, constant][::turn]), op(*[exact, wide][::turn]), grown


def test_weights_that_a_scale_would_overflow() -> None:
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"]), helper.make_node("Mul", ["c", "s"], ["y"])]
    weights = {"w": np.full((2, 2, 1, 1), 1e30, np.float32), "s": np.array(1e20, np.float32)}
    x = np.random.default_rng(0).standard_normal((1, 2, 3, 3)).astype(np.float32) * np.float32(1e-20)
    (found,) = on_core(make_model(nodes, {"x": x.shape}, ["y"], weights), {"x": x}, "inf2", "none")
    exact = np.broadcast_to(x.astype(np.float64).sum(axis=1, keepdims=True) * 1e50, found.shape)
    np.testing.assert_allclose(found, exact, rtol=1e-5, atol=1e-6 * np.abs(exact).max())  # two terms in float32
