"""The operator `tvm_neuron::run` of torch: a compiled library, as the bytes of a tensor, on the hardware model."""

import tempfile
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from threading import Lock

import torch
import tvm

from tvm_neuron.errors import InputError, NeffError
from tvm_neuron.relay.factory import ExecutorFactory
from tvm_neuron.runtime import Executor

_LIBRARY = torch.library.Library("tvm_neuron", "FRAGMENT")
_loaded: dict[str, tuple[Executor, Lock]] = {}
_loading = Lock()


def register() -> None:
    """Make `torch.ops.tvm_neuron.run(inputs, library, digest)` known to this process."""
    _LIBRARY.define("run(Tensor[] inputs, Tensor library, str digest) -> Tensor[]")
    _LIBRARY.impl("run", _run, "CPU")


def as_tensor(library: ExecutorFactory) -> tuple[torch.Tensor, str]:
    """The bytes of the exported library, and what `run` knows it by."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "model.so")
        library.export_library(file)
        content = file.read_bytes()
    return torch.frombuffer(bytearray(content), dtype=torch.uint8), sha256(content).hexdigest()


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
    with _loading:
        if digest not in _loaded:
            _loaded[digest] = _load(library, digest), Lock()
        executor, lock = _loaded[digest]
    with lock:
        return run_on(executor, inputs)


def _load(library: torch.Tensor, digest: str) -> Executor:
    content = library.detach().contiguous().numpy().tobytes()
    if sha256(content).hexdigest() != digest:
        raise NeffError("the library inside the traced model is damaged: its bytes are not those that were compiled")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "model.so")
        file.write_bytes(content)
        module = tvm.runtime.load_module(str(file))
    executor: Executor = module["default"](tvm.cpu())
    return executor
