"""checked: a model file and what is given for it, when all checks before the import are through."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import onnx
from numpy.typing import ArrayLike

from tvm_neuron.frontend.onnx import checks
from tvm_neuron.frontend.onnx.batch import Batch
from tvm_neuron.frontend.onnx.functions import Functions, model_functions
from tvm_neuron.frontend.onnx.graphs import real_inputs
from tvm_neuron.frontend.onnx.importer import Importer
from tvm_neuron.frontend.onnx.model_file import Stored


@dataclass(frozen=True)
class Checked:
    """The model and those of its weights that are still in the file, `shapes` and `dtypes` of its inputs, `known`
    values of others, and the change of the batch size that the shapes ask for."""

    proto: onnx.ModelProto
    stored: Stored
    opset: int
    shapes: dict[str, tuple[int, ...]]
    dtypes: dict[str, str]
    known: dict[str, np.ndarray]
    batch: Batch | None
    functions: Functions

    def importer(
        self, shapes: dict[str, tuple[int, ...]], dtypes: dict[str, str], known: dict[str, np.ndarray]
    ) -> Importer:
        """An import of it, or of a part with inputs of its own."""
        return Importer(shapes, dtypes, known, self.batch, self.functions, self.proto.producer_name)


def checked(
    model: onnx.ModelProto | str | os.PathLike[str], shape: dict[str, tuple[int, ...]] | None,
    dtype: str | dict[str, str], opset: int | None, values: Mapping[str, ArrayLike] | None,
) -> Checked:  # fmt: skip
    """The model with the arguments of `from_onnx`. Raises what it does of the file and these."""
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
    batch = _changed_batch(graph, shapes, known)
    return Checked(proto, stored, version, shapes, dtypes, known, batch, model_functions(proto))


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
