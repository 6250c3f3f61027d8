"""Random tensors: of the asked distribution, the same in every run, and nothing without a seed."""

import numpy as np
import onnx
import pytest
import tvm
from onnx import helper

import tvm_neuron
from tests.frontend.test_indexing import model
from tvm_neuron.errors import ModelError
from tvm_neuron.relay import build, frontend
from tvm_neuron.relay.graph_executor import GraphModule


def run(node: onnx.NodeProto, x: np.ndarray) -> np.ndarray:
    """The output for x, which is an operand or only there so that the model has an input."""
    proto = model(node, {"x": x}, {})
    if "x" not in node.input:
        node = helper.make_node("Add", ["x", "drawn"], ["y"], name="sum")
        proto.graph.node[0].output[0] = "drawn"
        proto.graph.node.append(node)
    mod, params = frontend.from_onnx(proto)
    lib = build(mod, target="neuron", params=params)
    assert {row.where for row in tvm_neuron.report(lib).placement} <= {"neuroncore", "compile time"}
    runner = GraphModule(lib["default"](tvm.cpu(0)))
    runner.run(x=x)
    return np.asarray(runner.get_output(0).numpy())


SHAPE = (40, 100)


@pytest.mark.parametrize("op", ["RandomUniform", "RandomUniformLike"])
def test_uniform(op: str) -> None:
    operands, attrs = ([], {"shape": SHAPE}) if op == "RandomUniform" else (["x"], {})
    drawn = run(helper.make_node(op, operands, ["y"], seed=3.0, low=-2.0, high=6.0, **attrs), np.zeros(SHAPE, "f4"))
    assert drawn.min() >= -2
    assert drawn.max() < 6
    assert abs(drawn.mean() - 2) < 0.2
    assert abs(drawn.std() - 8 / np.sqrt(12)) < 0.1


@pytest.mark.parametrize("op", ["RandomNormal", "RandomNormalLike"])
def test_normal(op: str) -> None:
    operands, attrs = ([], {"shape": SHAPE}) if op == "RandomNormal" else (["x"], {})
    drawn = run(helper.make_node(op, operands, ["y"], seed=3.0, mean=5.0, scale=2.0, **attrs), np.zeros(SHAPE, "f4"))
    assert abs(drawn.mean() - 5) < 0.1
    assert abs(drawn.std() - 2) < 0.1


def test_multinomial() -> None:
    chances = np.float32([0.1, 0.2, 0.7])
    logits = np.log(np.stack([chances, chances[::-1]])) + np.float32([[3.0], [-2.0]])
    drawn = run(helper.make_node("Multinomial", ["x"], ["y"], seed=1.0, sample_size=4000), logits)
    assert drawn.shape == (2, 4000)
    assert drawn.dtype == np.int32
    counts = np.stack([np.bincount(row, minlength=3) for row in drawn]) / 4000
    # a frequency of 4000 draws deviates by 0.008 at most in standard deviations
    assert np.abs(counts - [chances, chances[::-1]]).max() < 0.04
    assert 0.6 * (1 - 0.58) < np.mean(drawn[:, 1:] != drawn[:, :-1]) < 1  # draws do not depend on each other


def test_bernoulli() -> None:
    chances = np.broadcast_to(np.linspace(0, 1, 40, dtype=np.float32)[:, None], SHAPE).copy()
    drawn = run(helper.make_node("Bernoulli", ["x"], ["y"], seed=1.0), chances)
    assert set(np.unique(drawn)) == {0.0, 1.0}
    assert not drawn[0].any()
    assert drawn[-1].all()
    assert np.abs(drawn.mean(1) - chances[:, 0]).max() < 0.2


def test_a_seed_gives_the_same_values_every_time_and_another_seed_others() -> None:
    x = np.zeros((4, 5), np.float32)
    first, again, other = (
        run(helper.make_node("RandomUniform", [], ["y"], seed=seed, shape=(4, 5)), x) for seed in (1.0, 1.0, 1.5)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_without_a_seed_it_is_refused() -> None:
    node = helper.make_node("RandomUniform", [], ["y"], name="noise", shape=(4, 5))
    proto = model(node, {"x": np.zeros((4, 5), np.float32)}, {})
    with pytest.raises(ModelError, match=r"noise.*has no seed.*set its attribute seed"):
        tvm_neuron.frontend.from_onnx(proto)


def test_for_scripts_of_relay_it_gets_one_at_import() -> None:
    node = helper.make_node("RandomUniform", [], ["y"], name="noise", shape=(4, 5))
    with pytest.warns(UserWarning, match="'noise' has no seed: its values are drawn at import"):
        first, again = (run(node, np.zeros((4, 5), np.float32)) for _ in range(2))
    assert not np.array_equal(first, again)
