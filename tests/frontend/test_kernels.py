"""Modules that TVM's pipelines have lowered to kernels in TIR: compiled as before, by what the kernels compute."""

import numpy as np
import onnx
import onnxruntime
import pytest
import tvm
from onnx import helper
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx

import tvm_neuron
from tests.onnx_models import make_model
from tvm_neuron.errors import PlacementWarning

RNG = np.random.default_rng(16)
X = RNG.standard_normal((2, 3, 16, 16)).astype(np.float32)
LOWERINGS = {"zero": relax.get_pipeline("zero"), "legalised": relax.transform.LegalizeOps()}


def network() -> onnx.ModelProto:
    weights = {
        "w": RNG.standard_normal((8, 3, 3, 3)).astype(np.float32),
        "b": RNG.standard_normal(8).astype(np.float32),
        "f": RNG.standard_normal((8 * 8 * 8, 10)).astype(np.float32) / 100,
    }
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1] * 4),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["p"], ["g"]),
        helper.make_node("MatMul", ["g", "f"], ["m"]),
        helper.make_node("Softmax", ["m"], ["y"]),
    ]
    return make_model(nodes, {"x": X.shape}, ["y"], weights)


def run(executable: tvm.runtime.Executable, *inputs: np.ndarray) -> np.ndarray:
    return relax.VirtualMachine(executable, tvm.cpu())["main"](*map(tvm.runtime.tensor, inputs)).numpy()


@pytest.mark.parametrize("lowering", LOWERINGS)
def test_the_program_is_the_same(lowering: str) -> None:
    model = network()
    plain = tvm.compile(from_onnx(model), target="neuron")
    executable = tvm.compile(LOWERINGS[lowering](from_onnx(model)), target="neuron")
    np.testing.assert_array_equal(run(executable, X), run(plain, X))
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": X})
    np.testing.assert_allclose(run(executable, X), expected, atol=0.01)  # two products in bfloat16
    found, wanted = tvm_neuron.report(executable), tvm_neuron.report(plain)
    assert {row.where for row in found.placement} <= {"neuroncore", "compile time"}
    assert found.cycles == wanted.cycles
    assert "matmul" in {row.op for row in found.placement}


def test_kernels_that_no_engine_runs_stay_on_the_cpu() -> None:
    x = relax.Var("x", relax.TensorType((40, 8), "float64"))
    i = relax.Var("i", relax.TensorType((5,), "int64"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x, i]):
        with builder.dataflow():
            rows = builder.emit(relax.op.take(x, i, 0))
            y = builder.emit_output(relax.op.exp(rows))
        builder.emit_func_output(y)
    data, at = RNG.standard_normal((40, 8)), RNG.integers(0, 40, 5)
    with pytest.warns(tvm_neuron.errors.PlacementWarning, match="nothing of the model runs on the NeuronCore"):
        executable = tvm.compile(LOWERINGS["zero"](builder.get()), target="neuron")
    np.testing.assert_allclose(run(executable, data, at), np.exp(data[at]), rtol=1e-14)  # float64
    placement = tvm_neuron.report(executable).placement
    assert all(row.where == "cpu" and "floats of 64 or 8 bits" in row.reason for row in placement)


def test_equal_kernels_of_other_attributes_are_kept_apart() -> None:
    """Softmax over either axis: the same operands, operator and types, and other kernels."""
    data = RNG.standard_normal((8, 8)).astype(np.float32)
    for axis in (0, 1):
        x = relax.Var("x", relax.TensorType((8, 8), "float32"))
        builder = relax.BlockBuilder()
        with builder.function("main", [x]):
            with builder.dataflow():
                y = builder.emit_output(relax.op.nn.softmax(x, axis))
            builder.emit_func_output(y)
        executable = tvm.compile(LOWERINGS["legalised"](builder.get()), target="neuron")
        e = np.exp(data - data.max(axis, keepdims=True))
        np.testing.assert_allclose(run(executable, data), e / e.sum(axis, keepdims=True), rtol=1e-4)


BY_HAND = """
@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def sums(x: T.Buffer((4, 8), "float32"), twice: T.Buffer((4, 8), "float32"), total: T.Buffer((4, 8), "float32")):
        for i in range(4):
            for j in range(8):
                twice[i, j] = x[i, j] * T.float32(2)
                if j == 0:
                    total[i, j] = x[i, j]
                else:
                    total[i, j] = total[i, j - 1] + x[i, j]

    @R.function
    def main(x: R.Tensor((4, 8), "float32")):
        cls = Module
        both = R.call_tir(cls.sums, (x,), out_ty=[R.Tensor((4, 8), "float32"), R.Tensor((4, 8), "float32")])
        return R.add(both[0], both[1])
"""


def test_kernels_by_hand_have_several_results_and_need_no_blocks() -> None:
    data = RNG.standard_normal((4, 8)).astype(np.float32)
    executable = tvm.compile(tvm.script.from_source(BY_HAND), target="neuron")
    wanted = 2 * data + np.cumsum(data, axis=1, dtype=np.float64)
    np.testing.assert_allclose(run(executable, data), wanted, rtol=1e-5, atol=1e-5)  # sums of eight in float32


def test_a_kernel_by_itself_is_said_to_run_on_the_cpu() -> None:
    a = tvm.te.placeholder((16, 64), name="a")
    kernel = tvm.te.create_prim_func([a, tvm.te.compute((16, 64), lambda i, j: a[i, j] + 1.0, name="b")])
    with pytest.warns(PlacementWarning, match=r"the TIR function 'main' is compiled for the CPU.*relax\.call_tir"):
        executable = tvm.compile(kernel, target="neuron")
    x, y = (tvm.runtime.tensor(values) for values in (RNG.standard_normal((2, 16, 64)).astype(np.float32)))
    executable(x, y)
    np.testing.assert_array_equal(y.numpy(), x.numpy() + 1)
