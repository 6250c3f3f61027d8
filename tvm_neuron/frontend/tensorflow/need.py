"""The imports of TensorFlow and tf2onnx, when a model of it is given."""

from importlib import import_module
from types import ModuleType

from tvm_neuron.errors import from_extra


def need_tensorflow() -> ModuleType:
    """The module `tensorflow`.

    Raises:
        OptionError: it, or what writes its graphs as ONNX, is not installed.
    """
    with from_extra("tensorflow", "a model of TensorFlow"):
        tensorflow = import_module("tensorflow")
        import_module("tf2onnx")
        return tensorflow
