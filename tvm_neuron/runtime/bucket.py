"""Bucket: a library as it was compiled for one set of shapes."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tvm
import tvm_ffi
from tvm import relax

from tvm_neuron.neff import TensorInfo
from tvm_neuron.runtime.batches import batch_of, joined, parts
from tvm_neuron.runtime.contents import manifest
from tvm_neuron.runtime.host import BASELINE, check_level
from tvm_neuron.runtime.tensors import as_numpy, as_tensor

Tensors = Mapping[str, tvm.runtime.Tensor]


class Bucket:
    """The virtual machine of one compiled module; `batch` is its number of rows if it takes any, else None."""

    def __init__(self, module: tvm.runtime.Module, device: tvm.runtime.Device) -> None:
        """`module` is runnable: compiled by `Executable.jit`, or loaded from a file.

        Raises HostError: its CPU parts were compiled for a processor that has more than this machine's.
        """
        described = manifest(module)
        check_level(described["options"].get("host_cpu", BASELINE))
        self.inputs = _infos(described["inputs"])
        self.outputs = _infos(described["outputs"])
        self.batch = batch_of(self.inputs) if described["options"].get("dynamic_batch") else None
        self._main = relax.VirtualMachine(module, device)["main"]

    def takes(self, name: str, shape: tuple[int, ...]) -> bool:
        """Whether an input may have this shape: the compiled one, or one with another number of rows."""
        compiled = next(info.shape for info in self.inputs if info.name == name)
        if self.batch is None or not shape or not shape[0]:
            return shape == compiled
        return shape[1:] == compiled[1:]

    def fits(self, arrays: Mapping[str, np.ndarray]) -> bool:
        """Whether all inputs are there and have the compiled shapes."""
        return all(info.name in arrays and arrays[info.name].shape == info.shape for info in self.inputs)

    def run(self, values: Tensors) -> list[tvm.runtime.Tensor]:
        """The outputs for inputs of the compiled shapes."""
        result = self._main(*(values[info.name] for info in self.inputs))
        several = not isinstance(result, tvm.runtime.Tensor | tvm_ffi.Shape)
        return [as_tensor(value) for value in (result if several else (result,))]

    def run_rows(self, arrays: Mapping[str, np.ndarray], rows: int) -> list[tvm.runtime.Tensor]:
        """The outputs for any number of rows: split, and padded where too few are left."""
        assert self.batch is not None
        found, counts = [], []
        for part, real in parts(arrays, rows, self.batch):
            results = self.run({name: tvm.runtime.tensor(array) for name, array in part.items()})
            found.append([as_numpy(result) for result in results])
            counts.append(real)
        return [tvm.runtime.tensor(array) for array in joined(found, counts)]


def for_rows(buckets: Sequence[Bucket], rows: int) -> Bucket:
    """Of buckets in order of size the first that holds so many rows at once, else the largest."""
    return next((each for each in buckets if each.batch is not None and each.batch >= rows), buckets[-1])


def _infos(rows: Sequence[Mapping[str, Any]]) -> tuple[TensorInfo, ...]:
    return tuple(TensorInfo(row["name"], tuple(row["shape"]), row["dtype"]) for row in rows)
