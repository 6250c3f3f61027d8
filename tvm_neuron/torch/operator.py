"""The operator `tvm_neuron::run` of torch: a compiled library, as the bytes of a tensor, on the hardware model."""

from collections.abc import Sequence

import torch
import tvm

from tvm_neuron.errors import InputError
from tvm_neuron.relay.factory import ExecutorFactory
from tvm_neuron.runtime import Executor
from tvm_neuron.runtime.packed import pack, unpacked

_LIBRARY = torch.library.Library("tvm_neuron", "FRAGMENT")


def register() -> None:
    """Make `torch.ops.tvm_neuron.run(inputs, library, digest)` known to this process."""
    _LIBRARY.define("run(Tensor[] inputs, Tensor library, str digest) -> Tensor[]")
    _LIBRARY.impl("run", _run, "CPU")


def as_tensor(library: ExecutorFactory) -> tuple[torch.Tensor, str]:
    """The bytes of the exported library, and what `run` knows it by."""
    content, digest = pack(library)
    return torch.frombuffer(bytearray(content), dtype=torch.uint8), digest


def run_on(executor: Executor, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The outputs for inputs in the library's order.

    Raises:
        InputError: there are more or fewer, or one has another shape or dtype.
    """
    names = [spec.name for spec in executor.inputs]
    if len(inputs) != len(names):
        raise InputError(f"the library takes {len(names)} tensors ({', '.join(names)}), got {len(inputs)}")
    given = {
        name: tvm.runtime.from_dlpack(tensor.detach().contiguous())
        for name, tensor in zip(names, inputs, strict=True)
    }  # fmt: skip
    executor.run(**given)
    return [torch.from_dlpack(executor.get_output(index)).clone() for index in range(len(executor.outputs))]


def _run(inputs: Sequence[torch.Tensor], library: torch.Tensor, digest: str) -> list[torch.Tensor]:
    executor, lock = unpacked(lambda: library.detach().contiguous().numpy().tobytes(), digest)
    with lock:
        return run_on(executor, inputs)
