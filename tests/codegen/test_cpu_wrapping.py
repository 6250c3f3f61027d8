"""Integers on the CPU that have too many bits keep the low ones, whatever is computed of them in the same kernel."""

import numpy as np
import onnx
import pytest
import tvm
from numpy.typing import NDArray
from tvm import relax

from tests.onnx_models import reference
from tvm_neuron import BuildOptions, relay
from tvm_neuron.codegen import cpu

DTYPES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
STEPS = 4
_WAYS = [
    (relax.op.add, np.add), (relax.op.subtract, np.subtract), (relax.op.multiply, np.multiply),
    (relax.op.multiply, np.multiply),
]  # fmt: skip
_DIVISIONS = [
    (relax.op.floor_divide, np.floor_divide), (relax.op.floor_mod, np.remainder), (relax.op.less, np.less),
    (relax.op.maximum, np.maximum),
]  # fmt: skip


def _edges(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> NDArray:
    """Numbers of any size, the least and the largest among them."""
    limits = np.iinfo(dtype)
    drawn = rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    drawn = drawn >> rng.integers(0, limits.bits, shape).astype(dtype)
    return np.where(rng.random(shape) < 0.2, rng.choice(np.array([limits.min, limits.max, 0, 1], dtype), shape), drawn)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", range(4))
def test_chains(dtype: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    arrays = [_edges(rng, dtype, shape) for shape in [(3, 40), (40,), (3, 1)]]
    variables = [relax.Var(f"x{n}", relax.TensorType(array.shape, dtype)) for n, array in enumerate(arrays)]
    given = dict(zip(variables, arrays, strict=True))
    number = np.array(int(rng.integers(np.iinfo(dtype).max // 2)) + 1, dtype)  # by which is multiplied and divided
    given[constant := relax.const(number, dtype)] = number
    builder, value, wanted = relax.BlockBuilder(), variables[0], arrays[0]
    with builder.function("main", variables), np.errstate(over="ignore"):
        with builder.dataflow():  # in which alone operators get a kernel together
            for step in range(STEPS):
                take, compute = (_DIVISIONS if step % 2 else _WAYS)[rng.integers(4)]
                other = constant if step % 2 or rng.random() < 0.5 else variables[rng.integers(3)]
                value, wanted = builder.emit(take(value, other)), np.asarray(compute(wanted, given[other]))
                if compute is np.less:
                    value = builder.emit(relax.op.where(value, variables[0], variables[1]))
                    wanted = np.where(wanted, arrays[0], arrays[1])
            value = builder.emit_output(value)
        builder.emit_func_output(value)
    with tvm.target.Target("llvm"):
        built = relax.build(cpu.lower(builder.get()), "llvm", relax_pipeline=None)
    found = relax.VirtualMachine(built, tvm.cpu())["main"](*map(tvm.runtime.tensor, arrays)).numpy()
    np.testing.assert_array_equal(found, wanted.astype(dtype))


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("last", ["Div", "Mod"])
def test_as_onnxruntime(dtype: str, last: str) -> None:
    # x * 2,000,000,000 / 2,000,000,000 was x, and x * 2,000,000,000 % 7 was x * 4 % 7
    model = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["": 19]> g ({dtype}[9] x) => ({dtype}[9] y)
        <{dtype} many = {{{np.iinfo(dtype).max - 147483647}}}> {{ most = Mul(x, many)  y = {last}(most, many) }}""")
    mod, params = relay.frontend.from_onnx(model)
    library = relay.build(mod, target="neuron", params=params, options=BuildOptions(on_cpu=("*",)))
    executor = relay.graph_executor.GraphModule(library["default"](tvm.cpu()))
    x = np.arange(9).astype(dtype)
    executor.run(x=x)
    np.testing.assert_array_equal(executor.get_output(0).numpy(), reference(model, {"x": x})[0])
