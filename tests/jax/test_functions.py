"""Every function of `functions.py` gives, in float32 as it is, what JAX gives on the CPU."""

import re
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tvm

import tvm_neuron
import tvm_neuron.jax
from tests.jax.functions import FUNCTIONS, floats
from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.xla.operators import CONVERTERS, collectives
from tvm_neuron.runtime import manifest

pytestmark = [pytest.mark.jax, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
EXACT = tvm_neuron.BuildOptions(fp32_cast="none")
ROUNDED = {"cast": 2.0**-8, "bfloat16": 2.0**-8}  # bfloat16 within: the core keeps more digits than it is asked for
FLOAT32 = 1e-4
"""Of a result; sums are of at most a few hundred products, and functions of ACT are good to 1e-5."""
LIKE_OTHERS = {"random_normal", "random_categorical", "random_choice", "dropout"}
"""What is done with random numbers; the numbers themselves are those of `random_uniform` and `random_permutation`."""


TEXT = """
func.func @main(%x: tensor<2x3xf32>, %y: tensor<3x2xf32>, %c: tensor<i1>) -> (tensor<2x2xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<f32>) {
  %0 = stablehlo.dot %x, %y : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
  %1 = stablehlo.logistic %x : tensor<2x3xf32>
  %2 = stablehlo.tan %1 : tensor<2x3xf32>
  %3 = chlo.tan %1 : tensor<2x3xf32> -> tensor<2x3xf32>
  %4 = stablehlo.add %2, %3 : tensor<2x3xf32>
  %5 = stablehlo.optimization_barrier %4 : tensor<2x3xf32>
  %6 = stablehlo.custom_call @Sharding(%5) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %7 = stablehlo.round_nearest_afz %x : tensor<2x3xf32>
  %8 = chlo.is_inf %7 : tensor<2x3xf32> -> tensor<2x3xi1>
  %above = chlo.is_pos_inf %7 : tensor<2x3xf32> -> tensor<2x3xi1>
  %below = chlo.is_neg_inf %7 : tensor<2x3xf32> -> tensor<2x3xi1>
  %apart = stablehlo.or %above, %below : tensor<2x3xi1>
  %both = stablehlo.and %apart, %8 : tensor<2x3xi1>
  %9 = stablehlo.convert %both : (tensor<2x3xi1>) -> tensor<2x3xf32>
  %10 = stablehlo.add %7, %9 : tensor<2x3xf32>
  %bits = stablehlo.constant dense<1069547520> : tensor<i32>
  %11 = stablehlo.bitcast_convert %bits : (tensor<i32>) -> tensor<f32>
  %12 = "stablehlo.if" (%c) ({
    stablehlo.return %11 : tensor<f32>
  }, {
    %13 = stablehlo.composite "my.negate" %11 {decomposition = @negate} : (tensor<f32>) -> tensor<f32>
    stablehlo.return %13 : tensor<f32>
  }) : (tensor<i1>) -> tensor<f32>
  return %0, %6, %10, %12 : tensor<2x2xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<f32>
}
func.func private @negate(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.negate %x : tensor<f32>
  return %0 : tensor<f32>
}
"""  # noqa: E501 - what JAX writes in other versions, or on several devices


def run(library: Any, arguments: tuple) -> list[np.ndarray]:
    executor = library["default"](tvm.cpu())
    for spec, value in zip(executor.inputs, jax.tree.leaves(arguments), strict=True):
        executor.set_input(spec.name, np.asarray(value))
    executor.run()
    return [executor.get_output(number).numpy() for number in range(len(executor.outputs))]


def check(found: list[np.ndarray], wanted: Any, tolerance: float) -> None:
    for got, right in zip(found, map(np.asarray, jax.tree.leaves(wanted)), strict=True):
        assert (got.shape, got.dtype) == (right.shape, right.dtype)
        if right.dtype.kind != "f":
            np.testing.assert_array_equal(got, right)
            continue
        largest = np.abs(right[np.isfinite(right)]).max(initial=1)
        np.testing.assert_allclose(got, right, rtol=tolerance, atol=tolerance / 10 * largest, equal_nan=True)


def test_precision_is_reduced_to_the_bit() -> None:
    function, arguments = FUNCTIONS["reduce_precision"]
    library = tvm_neuron.jax.compile(function, *arguments, target="neuron/inf2", options=EXACT)
    for found, wanted in zip(run(library, arguments), jax.jit(function)(*arguments), strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.many) if name in LIKE_OTHERS else name for name in FUNCTIONS]
)
def test_gives_what_jax_gives(name: str) -> None:
    function, arguments = FUNCTIONS[name]
    library = tvm_neuron.jax.compile(function, *arguments, target="neuron/inf2", options=EXACT)
    check(run(library, arguments), jax.jit(function)(*arguments), ROUNDED.get(name, FLOAT32))


def test_loops_run_on_the_cpu_and_say_why() -> None:
    function, arguments = FUNCTIONS["while"]
    found = manifest(tvm_neuron.jax.compile(function, *arguments, target="neuron/inf2").module)["placement"]
    reasons = [row["reason"] for row in found if row["op"] == "Loop"]
    assert reasons == ["its end depends on data, so it runs as a loop"]


def test_every_converter_is_used() -> None:
    seen: set[str] = set()
    for function, arguments in FUNCTIONS.values():
        module = jax.jit(function).lower(*arguments).compiler_ir("stablehlo")
        module.operation.walk(lambda op: seen.add(op.name) or jax._src.lib.mlir.ir.WalkResult.ADVANCE)
    written = {*re.findall(r"c?hlo\.\w+|stablehlo\.\w+", TEXT + NORMS)}
    elsewhere = {"stablehlo.rng", *collectives.CONVERTERS}  # of the random numbers' tests, `test_several_devices.py`
    assert CONVERTERS.keys() - seen - written == {"chlo.constant"} | elsewhere  # which no program writes


@pytest.mark.parametrize("flag", [False, True])
def test_what_jax_writes_elsewhere(flag: bool, tmp_path: Path) -> None:
    (tmp_path / "net.mlir").write_text(TEXT)
    x, y = floats(2, 3) * 3, floats(3, 2)
    library = tvm_neuron.compile(tmp_path / "net.mlir", target="neuron/inf2", options=EXACT)
    away = np.sign(x) * np.floor(np.abs(x) + 0.5)
    wanted = (x @ y, 2 * np.tan(1 / (1 + np.exp(-x))), away, np.float32(1.5 if flag else -1.5))
    check(run(library, (x, y, np.array(flag))), wanted, FLOAT32)


NORMS = """
func.func @main(%x: tensor<4x3x5xf32>, %s: tensor<3xf32>, %o: tensor<3xf32>, %g: tensor<4x3x5xf32>) -> (tensor<2x4x3x5xf32>, tensor<3xf32>, tensor<3xf32>, tensor<4x3x5xf32>, tensor<4x3x5xf32>, tensor<3xf32>, tensor<3xf32>) {
  %0:3 = "stablehlo.batch_norm_training"(%x, %s, %o) {epsilon = 1.0e-3 : f32, feature_index = 1 : i64} : (tensor<4x3x5xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<4x3x5xf32>, tensor<3xf32>, tensor<3xf32>)
  %1 = "stablehlo.batch_norm_inference"(%x, %s, %o, %0#1, %0#2) {epsilon = 1.0e-3 : f32, feature_index = 1 : i64} : (tensor<4x3x5xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<4x3x5xf32>
  %2:3 = "stablehlo.batch_norm_grad"(%x, %s, %0#1, %0#2, %g) {epsilon = 1.0e-3 : f32, feature_index = 1 : i64} : (tensor<4x3x5xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<4x3x5xf32>) -> (tensor<4x3x5xf32>, tensor<3xf32>, tensor<3xf32>)
  %3 = stablehlo.tuple %0#0, %1 : tuple<tensor<4x3x5xf32>, tensor<4x3x5xf32>>
  %4 = stablehlo.get_tuple_element %3[0] : (tuple<tensor<4x3x5xf32>, tensor<4x3x5xf32>>) -> tensor<4x3x5xf32>
  %5 = stablehlo.broadcast %4, sizes = [2] : (tensor<4x3x5xf32>) -> tensor<2x4x3x5xf32>
  return %5, %0#1, %0#2, %1, %2#0, %2#1, %2#2 : tensor<2x4x3x5xf32>, tensor<3xf32>, tensor<3xf32>, tensor<4x3x5xf32>, tensor<4x3x5xf32>, tensor<3xf32>, tensor<3xf32>
}
"""  # noqa: E501 - what TensorFlow's and PyTorch's compilers for XLA write


def test_batch_norms_and_their_gradients(tmp_path: Path) -> None:
    (tmp_path / "net.mlir").write_text(NORMS)
    x, scale, offset, gradient = floats(4, 3, 5) * 3 + 1, floats(3), floats(3), floats(4, 3, 5)

    def norm(x: jax.Array, scale: jax.Array, offset: jax.Array) -> jax.Array:
        mean, variance = x.mean((0, 2), keepdims=True), x.var((0, 2), keepdims=True)
        return (x - mean) / jnp.sqrt(variance + 1e-3) * scale[:, None] + offset[:, None]

    result, back = jax.vjp(norm, x, scale, offset)
    wanted = (np.stack([result, result]), x.mean((0, 2)), x.var((0, 2)), result, *back(gradient))
    library = tvm_neuron.compile(tmp_path / "net.mlir", target="neuron/inf2", options=EXACT)
    check(run(library, (x, scale, offset, gradient)), wanted, FLOAT32)
    assert not [row for row in manifest(library.module)["placement"] if row["where"] == "cpu"]


NEURONX = {
    "Abs": "abs", "Add": "add", "Allgather": "all_gather", "Allreduce": "all_reduce", "Atan2": "atan2",
    "Batchnorm": "batch_norm_training", "Batchnormgrad": "batch_norm_grad",
    "Batchnorminference": "batch_norm_inference", "BitcastConvertType": "bitcast_convert", "Broadcast": "broadcast",
    "BroadcastInDim": "broadcast_in_dim", "Ceil": "ceil", "Clamp": "clamp", "Compare": "compare",
    "Concatenate": "concatenate", "Constant": "constant", "ConstantLiteral": "constant",
    "ConvertElementType": "convert", "Cos": "cosine", "Customcall": "custom_call", "Div": "divide", "Dot": "dot",
    "DotGeneral": "dot_general", "DynamicUpdateSlice": "dynamic_update_slice", "Eq": "compare", "Exp": "exponential",
    "Floor": "floor", "Gather": "gather", "Ge": "compare", "GetTupleElement": "get_tuple_element", "Gt": "compare",
    "Iota": "iota", "Le": "compare", "Log": "log", "LogicalAnd": "and", "LogicalNot": "not", "Lt": "compare",
    "Max": "maximum", "Min": "minimum", "Mul": "multiply", "Ne": "compare", "Neg": "negate", "Pad": "pad",
    "Pow": "power", "Reduce": "reduce", "Reshape": "reshape", "Rev": "reverse",
    "RngBitGenerator": "rng_bit_generator", "RngUniform": "rng", "Rsqrt": "rsqrt", "Scatter": "scatter",
    "Select": "select", "SelectAndScatter": "select_and_scatter", "ShiftRightLogical": "shift_right_logical",
    "Sign": "sign", "Sin": "sine", "Slice": "slice", "Sqrt": "sqrt", "Sub": "subtract", "Tanh": "tanh",
    "Transpose": "transpose", "Tuple": "tuple",
}  # fmt: skip
"""The operators of neuronx-cc's documents; `test_every_converter_is_used` has all of them in a test beside JAX."""


def test_operators_of_neuronx_cc() -> None:
    assert len(NEURONX) == 62
    assert {f"stablehlo.{name}" for name in NEURONX.values()} <= CONVERTERS.keys()


def test_sorting_by_what_is_no_key_is_refused(tmp_path: Path) -> None:
    text = """
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0:2 = "stablehlo.sort"(%x, %y) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>, %d: tensor<f32>):
    %1 = stablehlo.compare LT, %a, %d : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) {dimension = 0 : i64, is_stable = true} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %0#0, %0#1 : tensor<4xf32>, tensor<4xf32>
}
"""
    (tmp_path / "net.mlir").write_text(text)
    with pytest.raises(ModelError, match="it compares otherwise than by one key after the other, each of which"):
        tvm_neuron.compile(tmp_path / "net.mlir")


def farthest(values: np.ndarray, low: float, high: float) -> float:
    """Kolmogorov and Smirnov's distance from the uniform distribution, times the root of the number of values."""
    places, steps = np.sort(values.ravel()), np.arange(1, values.size + 1) / values.size
    wanted = (places - low) / (high - low)
    gaps = np.abs([steps - wanted, steps - 1 / values.size - wanted])
    return float(np.sqrt(values.size) * gaps.max())


def test_random_numbers_are_drawn_in_each_run() -> None:
    def drawn(x: jax.Array) -> tuple[jax.Array, ...]:
        return tuple(jax.lax.rng_uniform(*ends, (64, 64)) for ends in ((x, x + 3), (0.0, 1.0), (-2, 3)))

    library = tvm_neuron.jax.compile(drawn, np.float32(-1), target="neuron/inf2", options=EXACT)
    tvm_neuron.runtime.seed(5)
    runs = [run(library, (np.float32(-1),)) for _ in range(2)]
    for wide, unit, integers in runs:
        for found, low, high in ((wide, -1, 2), (unit, 0, 1)):
            assert found.min() >= low
            assert found.max() < high + 1e-6  # rounded to float32
            assert farthest(found, low, high) < 2.2  # one of 8,000 such draws is as far
        assert abs(np.corrcoef(wide.ravel(), unit.ravel())[0, 1]) < 4 / np.sqrt(unit.size)  # not the same ones again
        assert integers.dtype == np.int32
        values, counts = np.unique(integers, return_counts=True)
        assert [*values] == [-2, -1, 0, 1, 2]
        assert np.abs(counts - unit.size / 5).max() < 4 * np.sqrt(unit.size * 0.2 * 0.8)
    assert (runs[0][1] != runs[1][1]).mean() > 0.99  # another run has others
    assert abs(np.corrcoef(runs[0][1].ravel(), runs[1][1].ravel())[0, 1]) < 4 / 64
    tvm_neuron.runtime.seed(5)
    for found, wanted in zip(run(library, (np.float32(-1),)), runs[0], strict=True):
        np.testing.assert_array_equal(found, wanted)  # and the same seed the same
    rows = manifest(library.module)["placement"]
    assert {row["reason"] for row in rows if row["op"] == "uniform"} == {"its numbers are drawn anew in each run"}


def test_random_numbers_of_each_round() -> None:
    """Of loops that are written out, and of those that run as loops."""

    def walked(x: jax.Array, n: jax.Array) -> tuple[jax.Array, jax.Array]:
        def step(_: Any, x: jax.Array) -> jax.Array:
            return x * 2 + (jax.lax.rng_uniform(0.0, 1.0, (8,)) > 0.5)

        return jax.lax.fori_loop(0, 20, step, x), jax.lax.fori_loop(0, n, step, x)

    library = tvm_neuron.jax.compile(walked, np.zeros(8, np.float32), np.int32(20), target="neuron/inf2", options=EXACT)
    tvm_neuron.runtime.seed(6)
    for found in run(library, (np.zeros(8, np.float32), np.int32(20))):  # twenty bits in each of eight numbers
        assert found.max() < 2**20
        bits = (found.astype(int)[:, None] >> np.arange(20)) & 1
        assert abs(bits.mean() - 0.5) < 4 * 0.5 / np.sqrt(160)
        assert len({*found.tolist()}) == 8


def test_collectives_outside_of_shards_are_refused(tmp_path: Path) -> None:
    text = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.all_reduce"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""
    (tmp_path / "net.mlir").write_text(text)
    with pytest.raises(ModelError, match=r"it is for several devices, and stands outside of jax.shard_map and"):
        tvm_neuron.compile(tmp_path / "net.mlir")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: jax.lax.complex(x, x).real, r"stablehlo.complex\) has no converter to ONNX"),
        (lambda x: jnp.fft.rfft(x).real, r"fft\) has no converter to ONNX"),
        (lambda x: jax.lax.reduce_precision(x.astype(jnp.float16), 4, 3), "it rounds float16; float32 alone can be"),
        (lambda x: jax.lax.reduce_window(x, 1.0, jax.lax.add, (2,), (1,), "VALID"), "it starts from another value"),
        (lambda x: jax.lax.reduce(x, 0.0, lambda a, b: jnp.stack([a, b]).sum(), (0,)), "no operator of single"),
        (lambda x: jax.lax.reduce(x[:0], 0.0, jnp.logaddexp, (0,)), "it combines no elements otherwise than by one"),
        (lambda x: x + y, "JAX can't lower the function with these arguments: NameError"),  # noqa: F821
    ],
)
def test_what_is_refused_is_named(function: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        tvm_neuron.jax.compile(function, floats(4))


def test_a_function_needs_arguments() -> None:
    with pytest.raises(ModelError, match="a function of JAX needs example_inputs"):
        tvm_neuron.compile(jax.jit(jax.lax.sin))


def test_operators_have_the_names_of_their_places() -> None:
    @jax.jit
    def layer(x: jax.Array, w: jax.Array) -> jax.Array:
        return x @ w

    def network(params: dict, x: jax.Array) -> jax.Array:
        with jax.named_scope("head"):
            return jax.nn.relu(layer(x, params["w"]))

    library = tvm_neuron.jax.compile(network, {"w": floats(8, 4)}, floats(2, 8))
    found = manifest(library.module)
    assert [spec["name"] for spec in found["inputs"]] == ["params_w", "x"]
    assert any(row["name"].startswith("head/") and row["op"] == "MatMul" for row in found["placement"])
