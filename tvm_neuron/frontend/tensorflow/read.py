"""Files of TensorFlow: SavedModels, frozen graphs, and those of Keras 3."""

from importlib import import_module
from os.path import isfile  # which also knows that a name may be too long, unlike that of `Path`
from pathlib import Path
from typing import Any

from tvm_neuron.errors import ModelError, OptionError
from tvm_neuron.frontend.cause import cause
from tvm_neuron.frontend.tensorflow.need import need_tensorflow

_SAVED = "saved_model.pb"
_GRAPH, _KERAS = ".pb", (".keras", ".h5")
_TOUCHES_FILES_OR_PYTHON = ("ReadFile", "WriteFile", "MatchingFiles", "PyFunc", "PyFuncStateless", "EagerPyFunc")


def is_tensorflow(path: Path) -> bool:
    """Whether it is a folder with a SavedModel, or has the name of a graph or of a model of Keras."""
    return isfile(path / _SAVED) or path.suffix in (_GRAPH, *_KERAS)


def read(path: Path) -> Any:
    """The model in a folder or file; TensorFlow restores a SavedModel, Keras a .keras file in its safe mode.

    Raises:
        OptionError: TensorFlow is not installed.
        ModelError: there is none, or reading it could run what it says.
    """
    if path.name == _SAVED:
        path = path.parent
    try:
        path.stat()  # a file that is not there is said before a package that is not
        tensorflow = need_tensorflow()
        if path.suffix == ".h5":
            raise ModelError(
                f"'{path}' is of HDF5, which Keras can't read without running what it may hold: load it where you "
                "trust it and save it as .keras, keras.models.load_model(...).save('model.keras')"
            )
        if path.suffix == ".keras":
            return import_module("keras").models.load_model(path, compile=False, safe_mode=True)
        if path.is_dir():
            _check(tensorflow, path)
            return tensorflow.saved_model.load(str(path))
        graph = tensorflow.compat.v1.GraphDef()
        graph.ParseFromString(path.read_bytes())
        return graph
    except (ModelError, OptionError):
        raise
    except OSError as error:
        raise ModelError(f"'{path}' can't be read: {error.strerror or cause(error)}") from error
    except Exception as error:
        raise ModelError(f"'{path}' can't be read as a model of TensorFlow: {cause(error)}") from error


def _check(tensorflow: Any, path: Path) -> None:
    """Refuses graphs that would touch files or call Python while they are restored."""
    messages = import_module("tensorflow.core.protobuf.saved_model_pb2")
    saved = messages.SavedModel()
    saved.ParseFromString((path / _SAVED).read_bytes())
    for meta in saved.meta_graphs:
        graph = meta.graph_def
        for node in [*graph.node, *(node for function in graph.library.function for node in function.node_def)]:
            if node.op in _TOUCHES_FILES_OR_PYTHON:
                raise ModelError(f"'{path}' has operator '{node.name}' ({node.op}), which touches files or runs Python")
