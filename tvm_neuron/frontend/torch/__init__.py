"""PyTorch models into ONNX, as torch itself writes it, and so into Relax modules.

Torch is imported only when a model of it is given.
"""

from tvm_neuron.frontend.torch.exported import Exported, exported, has_tensors, is_of_torch
from tvm_neuron.frontend.torch.from_pytorch import (
    InputInfos,
    check_arguments,
    from_pytorch,
    is_script,
    script_as_onnx,
)
from tvm_neuron.frontend.torch.need import need_torch
from tvm_neuron.frontend.torch.read import SUFFIXES, read

__all__ = [
    "SUFFIXES",
    "Exported",
    "InputInfos",
    "check_arguments",
    "exported",
    "from_pytorch",
    "has_tensors",
    "is_of_torch",
    "is_script",
    "need_torch",
    "read",
    "script_as_onnx",
]
