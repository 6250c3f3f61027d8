"""ONNX models: `from_onnx`, with the signature of TVM 0.18's `relay.frontend.from_onnx`."""

import os
from collections.abc import Mapping

import onnx
import tvm
from numpy.typing import ArrayLike
from tvm_ffi import Array

from tvm_neuron.frontend.onnx import checks
from tvm_neuron.frontend.onnx.checked import checked
from tvm_neuron.frontend.onnx.graphs import real_inputs

Params = dict[str, tvm.runtime.Tensor]


def from_onnx(
    model: onnx.ModelProto | str | os.PathLike[str],
    shape: dict[str, tuple[int, ...]] | None = None,
    dtype: str | dict[str, str] = "float32",
    opset: int | None = None,
    freeze_params: bool = True,
    *,
    values: Mapping[str, ArrayLike] | None = None,
) -> tuple[tvm.IRModule, Params]:
    """Import an ONNX model (or the file at a path) as a Relax module and its weights.

    `shape` gives inputs their sizes: needed for dynamic ones, and allowed for fixed ones, to change the batch.
    `dtype` as a dictionary overrides the dtype of inputs; a string changes nothing, since ONNX inputs have one.
    `opset` reads the model under another version of the default operator set than it states.
    `values` gives inputs their values, needed where a shape or a number of iterations depends on one (axes, sizes,
    trip counts); such an input is no input of the result any more.

    Returns `(mod, params)`. `mod["main"]` takes the model's inputs and then its weights, `params` holds the weights
    by name; they are nowhere in the printed module. With `freeze_params` (the default) `main` also refers to them in
    its attribute `params`, so that building needs no `params=`; without it they are inputs until someone binds them.

    Raises ModelError: not an ONNX file, unknown opset, operators that read what nothing makes, dynamic shape,
    unsupported dtype or operator, a form of an operator that would come out wrong; NeedsValueError, a ModelError:
    the value of an input must be given.
    """
    found = checked(model, shape, dtype, opset, values)
    importer = found.importer(found.shapes, found.dtypes, found.known)
    mod, params = importer.import_graph(found.proto.graph, found.stored, found.opset)
    if freeze_params:
        mod["main"] = mod["main"].with_attr("params", Array(params.values()))
    return mod, params


def input_names(model: onnx.ModelProto | str | os.PathLike[str]) -> list[str]:
    """Of its inputs without those that have a value of their own. Raises ModelError: it is not an ONNX file."""
    return [value.name for value in real_inputs(checks.load_model(model)[0].graph)]

