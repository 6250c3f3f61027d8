"""Norms of groups of channels, in each form that frameworks write them in, against NumPy in float64."""

import numpy as np
import onnx
import pytest
import tvm
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper
from tvm import relax

import tvm_neuron
from tests.onnx_models import make_model
from tvm_neuron import relay
from tvm_neuron.errors import InternalError, ModelError
from tvm_neuron.frontend.normalize import normalize
from tvm_neuron.frontend.origin import bindings_of

EPSILON = 1e-3


def reference(x: np.ndarray, scale: np.ndarray, bias: np.ndarray, groups: int) -> np.ndarray:
    """With a scale and a bias for each channel."""
    apart = x.astype("float64").reshape(x.shape[0], groups, -1)
    mean, variance = apart.mean(2, keepdims=True), apart.var(2, keepdims=True)
    normal = ((apart - mean) / np.sqrt(variance + EPSILON)).reshape(x.shape)
    along = (-1, *[1] * (x.ndim - 2))
    return normal * scale.reshape(along) + bias.reshape(along)


def of_the_standard(shape: tuple[int, ...], groups: int, scale: np.ndarray, bias: np.ndarray) -> onnx.ModelProto:
    node = helper.make_node("GroupNormalization", ["x", "s", "b"], ["y"], num_groups=groups, epsilon=EPSILON)
    return make_model([node], {"x": list(shape)}, ["y"], {"s": scale, "b": bias}, opset=21)


def of_torch(shape: tuple[int, ...], groups: int, scale: np.ndarray, bias: np.ndarray) -> onnx.ModelProto:
    along = (-1, *[1] * (len(shape) - 2))
    ones, none = np.ones(groups, "float32"), np.zeros(groups, "float32")
    nodes = [
        helper.make_node("Reshape", ["x", "merged"], ["r"]),
        helper.make_node("InstanceNormalization", ["r", "one", "none"], ["n"], epsilon=EPSILON),
        helper.make_node("Reshape", ["n", "shape"], ["back"]),
        helper.make_node("Mul", ["back", "s"], ["scaled"]),
        helper.make_node("Add", ["scaled", "b"], ["y"]),
    ]
    weights = {"merged": np.int64([0, groups, -1]), "shape": np.int64(shape), "one": ones, "none": none}
    return make_model(nodes, {"x": list(shape)}, ["y"], weights | {"s": scale.reshape(along), "b": bias.reshape(along)})


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(
    form=st.sampled_from([of_the_standard, of_torch]),
    batch=st.integers(1, 2),
    groups=st.integers(1, 5),
    of_each=st.integers(1, 5),
    positions=st.lists(st.integers(1, 9), max_size=3),
    seed=st.integers(0, 99),
)
def test_groups_of_channels(form, batch: int, groups: int, of_each: int, positions: list[int], seed: int) -> None:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(seed)
    shape = (batch, groups * of_each, *positions)
    x = rng.normal(1.0, 2.0, shape).astype("float32")
    scale, bias = rng.normal(size=(2, shape[1])).astype("float32")
    options = tvm_neuron.BuildOptions(fp32_cast="none", must_compile=True)
    mod, params = relay.frontend.from_onnx(form(shape, groups, scale, bias))
    executor = relay.graph_executor.GraphModule(
        relay.build(mod, "neuron/inf2", params=params, options=options)["default"](tvm_neuron.device())
    )
    executor.run(x=x)
    # a group of equal elements is divided by the root of epsilon, which makes 30 of a rounding
    np.testing.assert_allclose(executor.get_output(0).numpy(), reference(x, scale, bias, groups), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_narrow_floats_are_rounded_once(dtype: str) -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(1.0, 2.0, (2, 6, 4, 3)).astype(dtype)
    scale, bias = rng.normal(size=(2, 6)).astype(dtype)
    node = helper.make_node("GroupNormalization", ["x", "s", "b"], ["y"], num_groups=2, epsilon=EPSILON)
    of = helper.np_dtype_to_tensor_dtype(x.dtype)
    model = make_model([node], {"x": list(x.shape)}, ["y"], {"s": scale, "b": bias}, opset=21, dtype=of)
    library = tvm_neuron.compile(model, options=tvm_neuron.BuildOptions(must_compile=True, fp32_cast="none"))
    executor = relay.graph_executor.GraphModule(library["default"](tvm_neuron.device()))
    executor.run(x=x)
    found = executor.get_output(0).numpy()
    assert found.dtype == x.dtype
    expected = reference(x, scale.astype("float64"), bias.astype("float64"), 2)
    half = 2.0**-8 if dtype == "bfloat16" else 2.0**-11
    np.testing.assert_allclose(found.astype("float64"), expected, rtol=half * 1.01, atol=1e-5)


@pytest.mark.parametrize("form", [of_the_standard, of_torch])
def test_channels_keep_their_dimension(form) -> None:  # type: ignore[no-untyped-def]
    mod, params = relay.frontend.from_onnx(form((1, 64, 32, 32), 1, *np.ones((2, 64), "float32")))
    largest = [
        binding.var.ty.shape
        for binding in bindings_of(normalize(mod, params)["main"])
        if np.prod([int(length) for length in binding.var.ty.shape]) == 64 * 32 * 32
    ]
    assert largest
    assert all([int(length) for length in shape] == [1, 64, 32, 32] for shape in largest)


def test_channels_at_the_end() -> None:
    x = relax.Var("x", relax.TensorType([2, 5, 12], "float32"))
    builder = relax.BlockBuilder()
    factors = [relax.const(np.linspace(0.5, 2, 12, dtype="float32")), relax.const(np.zeros(12, "float32"))]
    with builder.function("main", [x]):
        with builder.dataflow():
            made = builder.emit_output(builder.emit(relax.op.nn.group_norm(x, *factors, 4, -1, [1], EPSILON)))
        builder.emit_func_output(made)
    options = tvm_neuron.BuildOptions(fp32_cast="none", must_compile=True)
    with tvm_neuron.build_options(options):
        machine = relax.VirtualMachine(tvm.compile(builder.get(), target="neuron"), tvm.cpu())
    given_x = np.random.default_rng(0).normal(size=(2, 5, 12)).astype("float32")
    first = np.moveaxis(given_x, 2, 1)
    expected = np.moveaxis(reference(first, np.linspace(0.5, 2, 12), np.zeros(12), 4), 1, 2)
    np.testing.assert_allclose(machine["main"](tvm.runtime.tensor(given_x)).numpy(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("is_affine", [True, False])
@pytest.mark.parametrize("op", ["layer_norm", "instance_norm"])
def test_norms_of_float64(op: str, is_affine: bool) -> None:
    """TVM's kernels are not made for it. Sums of 30 elements lose a few of its last digits."""
    rng = np.random.default_rng(2)
    values, axes = rng.normal(1.0, 2.0, (3, 4, 5, 6)), (2, 3)
    of_factors = (5, 6) if op == "layer_norm" else (4,)
    factors = rng.normal(size=(2, *of_factors))
    x = relax.Var("x", relax.TensorType(values.shape, "float64"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            operands = [x, *(relax.const(each, "float64") for each in factors), *([1] if op == "instance_norm" else [])]
            norm = getattr(relax.op.nn, op)(*operands, list(axes), EPSILON, is_affine, is_affine)
            made = builder.emit_output(builder.emit(norm))
        builder.emit_func_output(made)
    with tvm_neuron.build_options(tvm_neuron.BuildOptions(on_defect=_raise)):
        machine = relax.VirtualMachine(tvm.compile(builder.get(), target="neuron"), tvm.cpu())
    normal = (values - values.mean(axes, keepdims=True)) / np.sqrt(values.var(axes, keepdims=True) + EPSILON)
    scale, bias = factors if op == "layer_norm" else factors[:, :, None, None]
    expected = normal * scale + bias if is_affine else normal
    np.testing.assert_allclose(machine["main"](tvm.runtime.tensor(values)).numpy(), expected, rtol=1e-13, atol=1e-13)


def _raise(error: InternalError) -> str:
    raise error


def test_groups_that_do_not_divide_the_channels() -> None:
    with pytest.raises(ModelError, match="its num_groups is 4; it must divide the 6 channels"):
        relay.frontend.from_onnx(of_the_standard((1, 6, 4), 4, *np.ones((2, 6), "float32")))
