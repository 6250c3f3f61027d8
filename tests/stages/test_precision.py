"""--fp32-cast: every mode is as exact as its dtypes say, and what the hardware can't multiply is not cast silently."""

from collections.abc import Mapping
from itertools import pairwise

import ml_dtypes
import numpy as np
import onnx
import pytest
import tvm
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from tvm import relax

import tvm_neuron
from tests.codegen.transformers import Encoder
from tests.onnx_models import Arrays, make_model, reference
from tvm_neuron import BuildOptions, build_options, neff, relay, runtime
from tvm_neuron.isa import Matmul, Transpose
from tvm_neuron.neff import Neff

RNG = np.random.default_rng(11)
X = {"x": RNG.standard_normal((1, 16, 24, 24)).astype(np.float32)}


def network() -> onnx.ModelProto:
    """A convolution, a residual one on tensors too large to be kept in float32 as a favour, a product, a softmax."""
    weights = {
        "w1": RNG.standard_normal((128, 16, 3, 3)) / 12,
        "w2": RNG.standard_normal((128, 128, 3, 3)) / 34,
        "w3": RNG.standard_normal((128, 10)) / 40,
    }
    same = {"pads": [1, 1, 1, 1]}
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["c1"], name="conv1", **same),
        helper.make_node("Relu", ["c1"], ["r1"], name="relu1"),
        helper.make_node("Conv", ["r1", "w2"], ["c2"], name="conv2", **same),
        helper.make_node("Add", ["r1", "c2"], ["sum"], name="sum"),
        helper.make_node("MaxPool", ["sum"], ["pooled"], name="pool", kernel_shape=[24, 24]),
        helper.make_node("Flatten", ["pooled"], ["flat"], name="flatten"),
        helper.make_node("MatMul", ["flat", "w3"], ["logits"], name="matmul"),
        helper.make_node("Softmax", ["logits"], ["y"], name="softmax"),
    ]
    return make_model(nodes, {"x": [1, 16, 24, 24]}, ["y"], {k: v.astype(np.float32) for k, v in weights.items()})


MODEL = network()


def in_float64(model: onnx.ModelProto, inputs: Arrays) -> NDArray[np.float64]:
    """The model's output as ONNX's reference computes it when everything in it is float64."""
    double = onnx.ModelProto()
    double.CopyFrom(model)
    for value in (*double.graph.input, *double.graph.output):
        value.type.tensor_type.elem_type = TensorProto.DOUBLE
    arrays = [(w.name, numpy_helper.to_array(w).astype(np.float64)) for w in double.graph.initializer]
    del double.graph.initializer[:]
    double.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in arrays)
    (result,) = ReferenceEvaluator(double).run(None, {k: v.astype(np.float64) for k, v in inputs.items()})
    return np.asarray(result, np.float64)


WANTED = in_float64(MODEL, X)


def build(model: onnx.ModelProto, target: str, cast: str, of: Mapping[str, str] | None = None) -> relay.ExecutorFactory:
    mod, params = relay.frontend.from_onnx(model)
    return relay.build(mod, target=target, params=params, options=BuildOptions(fp32_cast=cast, fp32_cast_of=of or {}))


def run(library: relay.ExecutorFactory, inputs: Arrays) -> NDArray:
    executor = relay.graph_executor.GraphModule(library["default"](tvm_neuron.device()))
    executor.run(**inputs)
    return executor.get_output(0).numpy()


def error_of(library: relay.ExecutorFactory) -> float:
    """The largest error, relative to the largest value."""
    return float(np.abs(run(library, X) - WANTED).max() / WANTED.max())


def programs(library: relay.ExecutorFactory) -> list[Neff]:
    return [neff.read(data) for data in runtime.neffs(library).values()]


def multiplied(library: relay.ExecutorFactory) -> dict[str, set[str]]:
    """For each operator the dtypes that the PE array multiplies for it."""
    found: dict[str, set[str]] = {}
    for compiled in programs(library):
        for _, instruction in compiled.program.instructions():
            if isinstance(instruction, Matmul):
                name = compiled.program.origins[instruction.origin].name
                found.setdefault(name, set()).update((instruction.stationary.dtype, instruction.moving.dtype))
    return found


# 2**-9, 2**-12 and 2**-25 are the largest relative errors of rounding once. Three layers multiply, the residual tensor
# is rounded twice more; errors of single products average out, so ten times that leaves room.
BOUNDS = {
    "all": 10 * 2.0**-9, "matmult": 10 * 2.0**-9, "matmult-bf16": 10 * 2.0**-9, "all-fp16": 10 * 2.0**-12,
    "matmult-fp16": 10 * 2.0**-12, "none": 10 * 2.0**-24,
}  # fmt: skip


@pytest.mark.slow
def test_each_mode_is_as_exact_as_its_dtypes() -> None:
    errors = {mode: error_of(build(MODEL, "neuron/inf2", mode)) for mode in BOUNDS}
    assert all(errors[mode] < bound for mode, bound in BOUNDS.items()), errors
    assert errors["matmult"] == errors["matmult-bf16"]
    order = [errors[mode] for mode in ("all", "all-fp16", "none")]
    assert all(rough > 4 * fine for rough, fine in pairwise(order)), errors
    assert errors["matmult"] > 4 * errors["matmult-fp16"] > 4 * errors["none"], errors


@pytest.mark.parametrize(("mode", "dtype"), [("all", "bfloat16"), ("matmult-fp16", "float16"), ("none", "float32")])
def test_the_array_multiplies_in_the_dtype_of_the_mode(mode: str, dtype: str) -> None:
    library = build(MODEL, "neuron/inf2", mode)
    assert multiplied(library) == {name: {dtype} for name in ("conv1", "conv2", "matmul")}
    (compiled,) = programs(library)
    assert compiled.options["fp32_cast"] == mode
    assert tvm_neuron.report(library).precision == {"fp32_cast": mode, "fp32_cast_of": {}}


def test_only_operands_of_the_array_are_cast_in_matmult() -> None:
    (compiled,) = programs(build(MODEL, "neuron", "matmult-fp16"))
    written = {
        tile.dtype
        for _, instruction in compiled.program.instructions()
        if instruction.engine in ("act", "pool")
        for name, tile in ((n, getattr(instruction, n, None)) for n in ("result",))
        if tile is not None and compiled.program.origins[instruction.origin].name in ("sum", "pool", "softmax")
    }
    assert "bfloat16" not in written
    library = build(_square(), "neuron", "matmult")
    x = {"x": RNG.standard_normal((1, 128, 32, 32)).astype(np.float32)}
    np.testing.assert_allclose(run(library, x), x["x"] * x["x"] + x["x"], rtol=1e-6)


def _square() -> onnx.ModelProto:
    nodes = [
        helper.make_node("Mul", ["x", "x"], ["s"], name="mul"),
        helper.make_node("Add", ["s", "x"], ["y"], name="add"),
    ]
    return make_model(nodes, {"x": [1, 128, 32, 32]}, ["y"])


def test_float32_products_go_to_the_cpu_where_the_array_has_none() -> None:
    library = build(MODEL, "neuron/inf1", "none")
    rows = {row.name: row for row in tvm_neuron.report(library).placement}
    for name in ("conv1", "conv2", "matmul"):
        assert rows[name].where == "cpu"
        assert rows[name].reason.startswith(
            "the PE array of inf1 multiplies bfloat16 and float16, and float32 is asked"
        )
    assert error_of(library) < BOUNDS["none"]


def test_operators_by_name() -> None:
    library = build(MODEL, "neuron/inf2", "all", {"*": "all-fp16", "conv*": "none", "conv1": "matmult"})
    assert multiplied(library) == {"conv1": {"bfloat16"}, "conv2": {"float32"}, "matmul": {"float16"}}
    assert error_of(library) < BOUNDS["all"]
    precise = build(MODEL, "neuron/inf2", "all", {"*": "none"})
    assert error_of(precise) < BOUNDS["none"]


@pytest.mark.parametrize("cast", ["all", "matmult-fp16", "none"])
@pytest.mark.parametrize(
    ("code", "dtype", "rounding"),
    [(TensorProto.FLOAT16, np.float16, 2.0**-12), (TensorProto.BFLOAT16, ml_dtypes.bfloat16, 2.0**-9)],
)
def test_a_model_in_16_bits_stays_so(cast: str, code: int, dtype: type, rounding: float) -> None:
    weights = {"w": (RNG.standard_normal((32, 16, 3, 3)) / 12).astype(dtype), "s": np.full((1,), 1.5, dtype)}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("Mul", ["c", "s"], ["m"], name="mul"),
        helper.make_node("Tanh", ["m"], ["y"], name="tanh"),
    ]
    model = make_model(nodes, {"x": [1, 16, 24, 24]}, ["y"], weights, dtype=code)
    library = build(model, "neuron", cast)
    inputs = {"x": X["x"].astype(dtype)}
    actual = run(library, inputs)
    assert actual.dtype == dtype
    assert multiplied(library) == {"conv": {np.dtype(dtype).name}}
    # The factor goes into the weights, which are rounded again: 144 independent errors of products of about 1/8; most
    # of the 18432 results come close to one rounding, the worst is at five standard deviations.
    np.testing.assert_allclose(actual.astype(np.float64), in_float64(model, inputs), atol=8 * rounding)


def test_through_tvm_compile() -> None:
    mod, _ = relay.frontend.from_onnx(MODEL)
    with build_options(BuildOptions(fp32_cast="none")):
        library = tvm.compile(mod, target="neuron/inf2")
    machine = relax.VirtualMachine(library, tvm.cpu())
    actual = machine["main"](tvm.runtime.tensor(X["x"])).numpy()
    assert np.abs(actual - WANTED).max() / WANTED.max() < BOUNDS["none"]
    assert runtime.manifest(library)["options"]["fp32_cast"] == "none"


def test_relayout_without_the_array_gives_the_same_numbers() -> None:
    """The rows of a product become the summed channels of the next one."""
    weights = {
        "w": (RNG.standard_normal((128, 64)) / 11).astype("f"),
        "v": (RNG.standard_normal((96, 32)) / 9).astype("f"),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], name="first"),
        helper.make_node("Transpose", ["a"], ["t"], name="turn", perm=[1, 0]),
        helper.make_node("MatMul", ["t", "v"], ["y"], name="second"),
    ]
    model = make_model(nodes, {"x": [96, 128]}, ["y"], weights)
    x = {"x": RNG.standard_normal((96, 128)).astype(np.float32)}
    results, transposed = [], []
    for fast in (True, False):
        mod, params = relay.frontend.from_onnx(model)
        library = relay.build(mod, target="neuron", params=params, options=BuildOptions(fast_relayout=fast))
        (compiled,) = programs(library)
        transposed.append(any(isinstance(one, Transpose) for _, one in compiled.program.instructions()))
        results.append(run(library, x))
    assert transposed == [True, False]
    np.testing.assert_array_equal(*results)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["all-fp16", "matmult-fp16", "none"])
def test_an_encoder(mode: str) -> None:
    """Products of two run-time tensors, softmax and LayerNormalization; onnxruntime itself is at 2**-22 or so."""
    encoder = Encoder(hidden=128, heads=2, rows=40)
    model, inputs = encoder.model(), encoder.inputs()
    library = build(model, "neuron/inf2", mode)
    assert not tvm_neuron.report(library).placed("cpu")
    (wanted,) = reference(model, inputs)
    error = np.linalg.norm(run(library, inputs) - wanted) / np.linalg.norm(wanted)
    assert error < BOUNDS[mode], error
