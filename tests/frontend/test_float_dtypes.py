"""Operators of one float operand in every float dtype that ONNX allows them, on the CPU, beside NumPy in float64."""

from collections.abc import Callable, Iterator
from math import erf
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import defs, helper

import tvm_neuron
from tests.frontend.test_standard_forms import compiled, made
from tvm_neuron import relay
from tvm_neuron.relay.graph_executor import GraphModule
from tvm_neuron.runtime.tensors import as_numpy

Array = NDArray[Any]
OPSET = 22
DTYPES = {"float16": "float16", "bfloat16": "bfloat16", "float32": "float", "float64": "double"}


def _spatial(x: Array) -> tuple[int, ...]:
    return tuple(range(2, x.ndim))


def _softmax(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(e / e.sum(-1, keepdims=True))


def _softplus(x: Array) -> Array:
    return np.logaddexp(x, 0)


def _sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def _one_at_the_maximum(x: Array) -> Array:
    return np.arange(x.shape[-1]) == x.argmax(-1, keepdims=True)


def _normalized(x: Array) -> Array:
    return np.asarray((x - x.mean((0, 2, 3), keepdims=True)) / (x.std((0, 2, 3), keepdims=True) + 1e-9))


def _neighbours(x: Array) -> Array:
    padded = np.pad(x, ((0, 0), (1, 1), (0, 0), (0, 0)))
    return np.asarray(padded[:, :-2] + x + padded[:, 2:])


_ERF = np.vectorize(erf, otypes=[np.float64])
_ALL = {"axis": None, "keepdims": True}
_ALPHA, _SLOPE, _LRN_ALPHA = (float(np.float32(number)) for number in (0.2, 0.01, 1e-4))  # attributes are float32

WANTED: dict[str, Callable[[Array], Any]] = {
    "Abs": np.abs, "Acos": np.arccos, "Acosh": np.arccosh, "Asin": np.arcsin, "Asinh": np.arcsinh, "Atan": np.arctan,
    "Atanh": np.arctanh, "Ceil": np.ceil, "Clip": lambda x: x, "Cos": np.cos, "Cosh": np.cosh, "Exp": np.exp,
    "Floor": np.floor, "Log": np.log, "Neg": np.negative, "Round": np.rint, "Sign": np.sign, "Sin": np.sin,
    "Sinh": np.sinh, "Sqrt": np.sqrt, "Tan": np.tan, "Tanh": np.tanh, "Identity": lambda x: x, "Erf": _ERF,
    "Reciprocal": np.reciprocal, "IsInf": np.isinf, "IsNaN": np.isnan, "Sigmoid": _sigmoid, "Softplus": _softplus,
    "Celu": lambda x: np.where(x > 0, x, np.expm1(x)), "Elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "Gelu": lambda x: 0.5 * x * (1 + _ERF(x / np.sqrt(2))), "HardSigmoid": lambda x: np.clip(_ALPHA * x + 0.5, 0, 1),
    "HardSwish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1), "LeakyRelu": lambda x: np.where(x > 0, x, _SLOPE * x),
    "Mish": lambda x: x * np.tanh(_softplus(x)), "Relu": lambda x: np.maximum(x, 0),
    "Selu": lambda x: 1.0507010221481323 * np.where(x > 0, x, 1.6732631921768188 * np.expm1(x)),
    "Shrink": lambda x: np.where(x > 0.5, x, np.where(x < -0.5, x, 0)), "Softsign": lambda x: x / (1 + np.abs(x)),
    "ThresholdedRelu": lambda x: np.where(x > 1, x, 0), "Softmax": _softmax,
    "LogSoftmax": lambda x: np.log(_softmax(x)),
    "Hardmax": _one_at_the_maximum, "LpNormalization": lambda x: x / np.linalg.norm(x, axis=-1, keepdims=True),
    "MeanVarianceNormalization": _normalized,
    "GlobalAveragePool": lambda x: x.mean(_spatial(x), keepdims=True),
    "GlobalLpPool": lambda x: np.sqrt((x * x).sum(_spatial(x), keepdims=True)),
    "GlobalMaxPool": lambda x: x.max(_spatial(x), keepdims=True), "Flatten": lambda x: x.reshape(len(x), -1),
    "Transpose": np.transpose, "Squeeze": np.squeeze, "Dropout": lambda x: x, "Shape": np.shape, "Size": np.size,
    "NonZero": lambda x: np.array(np.nonzero(x)), "Unique": np.unique, "ArgMax": lambda x: x.argmax(0)[None],
    "ArgMin": lambda x: x.argmin(0)[None], "EyeLike": lambda x: np.eye(*x.shape), "Trilu": np.triu,
    "ReduceL1": lambda x: np.abs(x).sum(**_ALL), "ReduceL2": lambda x: np.sqrt((x * x).sum(**_ALL)),
    "ReduceLogSum": lambda x: np.log(x.sum(**_ALL)), "ReduceLogSumExp": lambda x: np.log(np.exp(x).sum(**_ALL)),
    "ReduceMax": lambda x: x.max(**_ALL), "ReduceMean": lambda x: x.mean(**_ALL), "ReduceMin": lambda x: x.min(**_ALL),
    "ReduceProd": lambda x: x.prod(**_ALL), "ReduceSum": lambda x: x.sum(**_ALL),
    "ReduceSumSquare": lambda x: (x * x).sum(**_ALL), "Det": np.linalg.det,
    "LRN": lambda x: x / (1 + _LRN_ALPHA * _neighbours(x * x) / 3) ** 0.75,
}  # fmt: skip
_LIMITS = {"Acosh": (1.2, 3.0), "EyeLike": (-1.0, 1.0)} | dict.fromkeys(
    ("Acos", "Asin", "Atanh", "Log", "Reciprocal", "ReduceLogSum", "Sqrt"), (0.1, 0.9)
)
"""Between which the operand's elements lie; -3 and 3 for others."""
_OTHERS = {
    "Bernoulli": "random", "Multinomial": "random", "RandomNormalLike": "random", "RandomUniformLike": "random",
    "DFT": "its operand has an axis of one or two", "Resize": "needs scales", "Det": "has no converter",
    "SequenceConstruct": "its result is a sequence", "SplitToSequence": "its result is a sequence",
    "OptionalHasElement": "takes optionals", "OptionalGetElement": "takes optionals", "Optional": "gives an optional",
    "ConcatFromSequence": "takes sequences", "Swish": "younger", "Split": "gives parts",
    "DynamicQuantizeLinear": "quantises",
}  # fmt: skip
"""Operators that a test of one operand and no attributes does not fit."""


def operators(dtype: str) -> Iterator[str]:
    """What takes one operand of the dtype, and no attributes that it needs but LRN."""
    single = defs.OpSchema.FormalParameterOption.Single
    for schema in defs.get_all_schemas():
        required = [operand for operand in schema.inputs if operand.option == single]
        if schema.domain or schema.deprecated or len(required) != 1 or schema.name in _OTHERS:
            continue
        if any(attribute.required for attribute in schema.attributes.values()) and schema.name != "LRN":
            continue
        if f"tensor({DTYPES[dtype]})" in required[0].types:
            yield schema.name


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_operator_of_one_operand(dtype: str) -> None:
    """One model of all: as many outputs as operators."""
    names = sorted(operators(dtype))
    assert len(names) > 55
    rng, numpy_dtype = np.random.default_rng(16), np.dtype(getattr(ml_dtypes, dtype, dtype))
    shapes = dict.fromkeys(names, (2, 3, 4, 5)) | {"EyeLike": (3, 5), "Trilu": (3, 5)}
    given = {name: rng.uniform(*_LIMITS.get(name, (-3, 3)), shapes[name]).astype(numpy_dtype) for name in names}
    elem_type = helper.np_dtype_to_tensor_dtype(numpy_dtype)
    nodes = [helper.make_node(n, [f"{n}_x"], [f"{n}_y"], name=n, **({"size": 3} if n == "LRN" else {})) for n in names]
    graph = helper.make_graph(
        nodes,
        "all",
        [helper.make_tensor_value_info(f"{name}_x", elem_type, shapes[name]) for name in names],
        [onnx.ValueInfoProto(name=f"{name}_y") for name in names],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
    mod, params = relay.frontend.from_onnx(model)
    library = relay.build(mod, target="neuron", params=params, options=tvm_neuron.BuildOptions(on_cpu=("*",)))
    executor = GraphModule(library["default"]())
    executor.run(**{f"{name}_x": array for name, array in given.items()})
    step = float(ml_dtypes.finfo(numpy_dtype).eps)
    wrong = []
    for index, name in enumerate(names):
        found, wanted = as_numpy(executor.get_output(index)), np.asarray(WANTED[name](given[name].astype(np.float64)))
        # Formulas of up to some ten steps, each rounded to the dtype, on numbers of up to 3; sums of up to 120 of them.
        bound = 16 * step * (np.abs(wanted) + (3 if "Pool" not in name and "Reduce" not in name else 30))
        with np.errstate(invalid="ignore"):
            if found.shape != wanted.shape or not (np.abs(found.astype(np.float64) - wanted) <= bound).all():
                wrong.append(name)
    assert not wrong


@pytest.mark.parametrize(("size", "shape"), [(3, (2, 7, 5)), (4, (1, 6, 3, 4)), (5, (2, 3, 2, 2))])
def test_lrn_over_any_number_of_channels(size: int, shape: tuple[int, ...]) -> None:
    node = helper.make_node("LRN", ["x"], ["y"], size=size, alpha=0.5, beta=0.625, bias=1.5)
    x = np.random.default_rng(size).standard_normal(shape)
    low, high = (size - 1) // 2, size // 2
    padded = np.pad(x * x, [(0, 0), (low, high), *[(0, 0)] * (len(shape) - 2)])
    sums = sum(padded[:, at : at + shape[1]] for at in range(size))
    (found,) = compiled(made(node, {"x": x}, {}, opset=OPSET), {"x": x})
    np.testing.assert_allclose(found, x / (1.5 + 0.5 * sums / size) ** 0.625, rtol=1e-14)  # float64


@pytest.mark.parametrize("name", ["IsInf", "IsNaN"])
def test_what_no_engine_has_goes_to_the_cpu_with_the_reason(name: str) -> None:
    elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(ml_dtypes.bfloat16))
    values = [helper.make_tensor_value_info("x", elem_type, (2, 3))]
    graph = helper.make_graph([helper.make_node(name, ["x"], ["y"])], "g", values, [onnx.ValueInfoProto(name="y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
    mod, params = relay.frontend.from_onnx(model)
    with pytest.warns(tvm_neuron.errors.PlacementWarning, match="nothing of the model"):
        library = relay.build(mod, target="neuron", params=params)
    (row,) = tvm_neuron.report(library).placement
    assert row.where == "cpu"
    assert "TVM has no kernel of it here: Data type T.bfloat16 not supported" in row.reason
