"""Models of TensorFlow and Keras into ONNX, as tf2onnx writes it, and so into Relax modules.

TensorFlow is imported only when a model of it is given.
"""

from tvm_neuron.frontend.tensorflow.captured import Captured, captured, is_of_tensorflow
from tvm_neuron.frontend.tensorflow.from_tensorflow import from_keras, from_tensorflow
from tvm_neuron.frontend.tensorflow.need import need_tensorflow
from tvm_neuron.frontend.tensorflow.read import is_tensorflow, read
from tvm_neuron.frontend.tensorflow.to_onnx import model_as_onnx, to_onnx

__all__ = [
    "Captured",
    "captured",
    "from_keras",
    "from_tensorflow",
    "is_of_tensorflow",
    "is_tensorflow",
    "model_as_onnx",
    "need_tensorflow",
    "read",
    "to_onnx",
]
