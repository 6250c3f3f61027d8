"""ONNX models: `from_onnx`, with the signature of TVM 0.18's `relay.frontend.from_onnx`."""

import os
from collections.abc import Mapping

import numpy as np
import onnx
import tvm
from numpy.typing import ArrayLike
from tvm_ffi import Array

from tvm_neuron.frontend.onnx import checks
from tvm_neuron.frontend.onnx.batch import Batch
from tvm_neuron.frontend.onnx.functions import model_functions
from tvm_neuron.frontend.onnx.graphs import real_inputs
from tvm_neuron.frontend.onnx.importer import Importer

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
    proto, stored = checks.load_model(model)
    checks.check_texts(proto)
    version = checks.check_opset(proto, opset)
    graph = proto.graph
    checks.check_wiring(graph)
    checks.check_dtypes(graph)
    known = checks.check_values(graph, values)
    shapes = checks.check_shapes(graph, shape, known)
    checks.check_operators(proto, version)
    dtypes = checks.check_given_dtypes(graph, dtype)
    importer = Importer(
        shapes, dtypes, known, _changed_batch(graph, shapes, known), model_functions(proto), proto.producer_name
    )
    mod, params = importer.import_graph(graph, stored, version)
    if freeze_params:
        mod["main"] = mod["main"].with_attr("params", Array(params.values()))
    return mod, params


def input_names(model: onnx.ModelProto | str | os.PathLike[str]) -> list[str]:
    """Of its inputs without those that have a value of their own. Raises ModelError: it is not an ONNX file."""
    return [value.name for value in real_inputs(checks.load_model(model)[0].graph)]


def _changed_batch(
    graph: onnx.GraphProto, shapes: dict[str, tuple[int, ...]], known: dict[str, np.ndarray]
) -> Batch | None:
    """The change of batch size that the given shapes ask for, if all changed inputs ask for the same one."""
    changes = set()
    names = set()
    for value in real_inputs(graph):
        dims = value.type.tensor_type.shape.dim
        if value.name in known:
            continue
        new = shapes[value.name]
        if dims and new and dims[0].dim_value > 0:
            names.add(value.name)
            if dims[0].dim_value != new[0]:
                changes.add((dims[0].dim_value, new[0]))
    if len(changes) != 1:
        return None
    old, new_size = changes.pop()
    return Batch(old, new_size, names)
