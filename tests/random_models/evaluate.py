"""One operator, run by onnxruntime, or by onnx's own NumPy where onnxruntime has no kernel."""

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnxruntime.capi import onnxruntime_pybind11_state as states

IR_VERSION = 10
_OURS = (
    states.InvalidGraph, states.InvalidArgument, states.Fail, states.RuntimeException, states.ModelRequiresCompilation,
)  # fmt: skip


_NOT_BY_REFERENCE = {"GlobalMaxPool", "LRN"}
"""Of which onnx's own NumPy is wrong: the maximum over other dimensions than the spatial ones; too few channels."""
_DISPUTED = {"Resize"}  # onnxruntime takes sizes before rounding for align_corners with scales


class UnfitError(Exception):
    """An operator can't be added: its attributes don't fit, or its result is nothing that could be compared."""


class OneNode:
    """A node as a model of its own."""

    def __init__(
        self, node: onnx.NodeProto, inputs: Mapping[str, NDArray], constants: Mapping[str, NDArray], opset: int
    ) -> None:
        graph = helper.make_graph(
            [node],
            "node",
            [tensor_info(name, array) for name, array in inputs.items()],
            [onnx.ValueInfoProto(name=name) for name in node.output if name],
            [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=IR_VERSION)
        self._run = _sigmoid if node.op_type == "Sigmoid" and inputs else _runner(node, model)
        self._other = ReferenceEvaluator(model) if node.op_type in _DISPUTED else None

    def check(self, inputs: Mapping[str, NDArray], outputs: Sequence[NDArray]) -> None:
        """Raises UnfitError: the standard's own arithmetic gives other outputs than onnxruntime."""
        if self._other is None:
            return
        for mine, other in zip(outputs, self._other.run(None, dict(inputs)), strict=True):
            if mine.shape != other.shape or not np.allclose(mine, other, rtol=1e-2, atol=1e-3):
                raise UnfitError("what it means is disputed")

    def __call__(self, inputs: Mapping[str, NDArray]) -> list[NDArray]:
        """The outputs. Raises UnfitError."""
        try:
            arrays = {name: np.asarray(array) for name, array in inputs.items()}  # arithmetic makes numbers of scalars
            return [np.asarray(array) for array in self._run(arrays)]
        except (*_OURS, ValueError, IndexError, TypeError, RuntimeError) as error:
            raise UnfitError(str(error)) from error


def _sigmoid(inputs: Mapping[str, NDArray]) -> list[NDArray]:
    """Of the only input; onnxruntime has 0 for what is less than 2**-26."""
    return [np.exp(-np.logaddexp(0, -x.astype(np.float64))).astype(x.dtype) for x in inputs.values()]


def _runner(node: onnx.NodeProto, model: onnx.ModelProto):
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), session_options())
    except states.NotImplemented:
        if node.op_type in _NOT_BY_REFERENCE:
            raise UnfitError("there is no right reference") from None
        try:
            evaluator = ReferenceEvaluator(model)
        except NotImplementedError as error:
            raise UnfitError(str(error)) from error
        return lambda inputs: evaluator.run(None, inputs)
    except _OURS as error:
        raise UnfitError(str(error)) from error
    return lambda inputs: session.run(None, inputs)


def session_options() -> onnxruntime.SessionOptions:
    """No optimisations, no threads, no words."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    return options


def tensor_info(name: str, array: NDArray) -> onnx.ValueInfoProto:
    """The declaration of a tensor like `array`."""
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), _shape(array.shape))


def _shape(shape: Sequence[int]) -> list[int]:
    return [int(extent) for extent in shape]
