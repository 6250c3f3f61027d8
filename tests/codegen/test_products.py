"""Products of two tensors known only at run time, on both chips, against NumPy in float64, on the strict machine."""

import numpy as np
import pytest
import tvm
from hypothesis import example, given, settings
from hypothesis import strategies as st
from onnx import NodeProto, helper

import tvm_neuron
from tests.onnx_models import Arrays, make_model
from tvm_neuron import neff, relay, runtime
from tvm_neuron.sim import Machine

Shape = tuple[int, ...]


def run_on_core(nodes: list[NodeProto], inputs: Arrays, weights: Arrays, target: str = "neuron") -> np.ndarray:
    """The output "y" of a model that all runs on the core, the same in every mode of the machine."""
    model = make_model(nodes, {name: value.shape for name, value in inputs.items()}, ["y"], weights)
    mod, params = relay.frontend.from_onnx(model)
    library = relay.build(mod, target=target, params=params)
    placement = tvm_neuron.report(library).placement
    assert {row.where for row in placement} <= {"neuroncore", "compile time"}, placement
    executor = relay.graph_executor.GraphModule(library["default"](tvm.device("neuron")))
    executor.run(**inputs)
    actual = executor.get_output(0).numpy()
    (data,) = runtime.neffs(library).values()
    compiled = neff.read(data)
    machine = Machine(compiled.program, compiled.device, compiled.weights)
    for mode in ("step", "strict"):
        (other,) = machine.run(inputs, mode, 0).values()
        assert other.tobytes() == actual.tobytes(), mode
    return actual


def check(equation: str, nodes: list[NodeProto], a: np.ndarray, b: np.ndarray, target: str = "neuron") -> None:
    """Both operands are rounded to bfloat16 (a relative error of 2^-8 each), the sum is taken in float32."""
    actual = run_on_core(nodes, {"a": a, "b": b}, {}, target)
    wanted = np.einsum(equation, a.astype(np.float64), b.astype(np.float64))
    size = np.einsum(equation, np.abs(a), np.abs(b))
    assert actual.shape == wanted.shape
    assert np.all(np.abs(actual - wanted) <= 2.0**-6.9 * size + 1e-30)


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(
    batch=st.sampled_from([((), ()), ((3,), (3,)), ((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((4,), ())]),
    m=st.integers(1, 140),
    k=st.integers(1, 300),
    n=st.integers(1, 140),
    target=st.sampled_from(["neuron", "neuron/inf2"]),
)
@example(batch=((), ()), m=1, k=1, n=70, target="neuron")
@example(batch=((2,), (2,)), m=130, k=257, n=600, target="neuron")
@example(batch=((), ()), m=70, k=64, n=1, target="neuron/inf2")
def test_matmul(batch: tuple[Shape, Shape], m: int, k: int, n: int, target: str) -> None:
    a, b = normal(*batch[0], m, k), normal(*batch[1], k, n)
    check("...mk,...kn->...mn", [helper.make_node("MatMul", ["a", "b"], ["y"])], a, b, target)


@pytest.mark.parametrize(("trans_a", "trans_b"), [(0, 1), (1, 0), (1, 1)])
def test_gemm(trans_a: int, trans_b: int) -> None:
    a, b = normal(33, 150), normal(150, 70)
    node = helper.make_node("Gemm", ["a", "b"], ["y"], transA=trans_a, transB=trans_b, alpha=0.5)
    equation = ("km" if trans_a else "mk") + "," + ("nk" if trans_b else "kn") + "->mn"
    a, b = (a.T.copy() if trans_a else a), (b.T.copy() if trans_b else b)
    actual = run_on_core([node], {"a": a, "b": b}, {})
    size = np.einsum(equation, np.abs(a), np.abs(b))
    assert np.all(np.abs(actual - 0.5 * np.einsum(equation, a, b)) <= 2.0**-6.9 * size)


def test_weights_that_come_at_run_time() -> None:
    a, b = normal(1, 8, 9, 10), normal(16, 8, 3, 3)
    windows = np.lib.stride_tricks.sliding_window_view(a, (3, 3), (2, 3))
    actual = run_on_core([helper.make_node("Conv", ["a", "b"], ["y"])], {"a": a, "b": b}, {})
    size = np.einsum("nchwij,kcij->nkhw", np.abs(windows), np.abs(b))
    assert np.all(np.abs(actual - np.einsum("nchwij,kcij->nkhw", windows, b)) <= 2.0**-6.9 * size)


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(
    dim=st.sampled_from([5, 16, 32, 40, 64, 96, 128, 160]),
    heads=st.integers(1, 5),
    rows=st.integers(1, 70),
    keys=st.integers(2, 150),
)
@example(dim=64, heads=3, rows=33, keys=65)
@example(dim=96, heads=4, rows=20, keys=130)
def test_heads_side_by_side(dim: int, heads: int, rows: int, keys: int) -> None:
    """What attention does to scores and values: heads lie side by side in [rows, heads * dim] before and after."""
    a, b = normal(1, rows, heads * dim), normal(1, keys, heads * dim)
    weights = {"heads": np.int64([1, -1, heads, dim]), "flat": np.int64([1, rows, heads * dim])}
    nodes = [
        helper.make_node("Relu", ["a"], ["a0"]),
        helper.make_node("Relu", ["b"], ["b0"]),
        helper.make_node("Reshape", ["a0", "heads"], ["a1"]),
        helper.make_node("Reshape", ["b0", "heads"], ["b1"]),
        helper.make_node("Transpose", ["a1"], ["q"], perm=[0, 2, 1, 3]),
        helper.make_node("Transpose", ["b1"], ["k"], perm=[0, 2, 3, 1]),
        helper.make_node("Transpose", ["b1"], ["v"], perm=[0, 2, 1, 3]),
        helper.make_node("MatMul", ["q", "k"], ["s"]),
        helper.make_node("MatMul", ["s", "v"], ["o"]),
        helper.make_node("Transpose", ["o"], ["o1"], perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", ["o1", "flat"], ["o2"]),
        helper.make_node("Neg", ["o2"], ["y"]),
    ]
    actual = run_on_core(nodes, {"a": a, "b": b}, weights)
    q = np.maximum(a, 0).reshape(rows, heads, dim).astype(np.float64)
    k = np.maximum(b, 0).reshape(keys, heads, dim).astype(np.float64)
    wanted = -np.einsum("qhd,khd,khe->qhe", q, k, k).reshape(actual.shape)
    # Nothing is negative before the end, so each of five roundings moves the result by 2^-8 at most.
    np.testing.assert_allclose(actual, wanted, rtol=6 * 2.0**-8, atol=1e-6)


@pytest.mark.parametrize("depth", [3, 200])
def test_a_known_row_times_a_matrix(depth: int) -> None:
    """As the first state of a recurrent network, whose weights are known at run time only."""
    rng = np.random.default_rng(0)
    row, matrix = (rng.standard_normal(shape).astype(np.float32) for shape in ((1, depth), (depth, 300)))
    actual = run_on_core([helper.make_node("MatMul", ["row", "m"], ["y"])], {"m": matrix}, {"row": row})
    bound = 2**-7 * np.abs(row).astype(np.float64) @ np.abs(matrix)
    assert np.all(np.abs(actual - row.astype(np.float64) @ matrix) <= bound)


@pytest.mark.parametrize("start", [(32, 32), (64, 64), (96, 32), (7, 7), (64, 0)])
@pytest.mark.parametrize("chip", ["neuron", "neuron/inf2"])
def test_operands_that_begin_amid_the_partitions(start: tuple[int, int], chip: str) -> None:
    """Both on one partition the array takes them where they are; else they are moved."""
    a, b = normal(2, 20, 128), normal(2, 30, 128)
    cuts = {
        f"{name}{end}": np.array([at + 32 * (end == "e")]) for name, at in zip("ab", start, strict=True) for end in "se"
    }
    nodes = [
        helper.make_node("Relu", ["a"], ["ra"]),
        helper.make_node("Relu", ["b"], ["rb"]),
        helper.make_node("Slice", ["ra", "as", "ae", "axis"], ["pa"]),
        helper.make_node("Slice", ["rb", "bs", "be", "axis"], ["pb"]),
        helper.make_node("Transpose", ["pb"], ["tb"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["pa", "tb"], ["y"]),
    ]
    actual = run_on_core(nodes, {"a": a, "b": b}, {**cuts, "axis": np.array([2])}, chip)
    parts = [np.maximum(x, 0)[..., at : at + 32].astype(np.float64) for x, at in zip((a, b), start, strict=True)]
    wanted = np.einsum("bmk,bnk->bmn", *parts)
    assert np.all(np.abs(actual - wanted) <= 2.0**-6.9 * wanted + 1e-30)
