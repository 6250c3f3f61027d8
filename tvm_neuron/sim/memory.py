"""Memory: SBUF, PSUM and the DRAM tensors as bytes; what was never written is NaN."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.errors import InputError, ProgramError
from tvm_neuron.hw import Device
from tvm_neuron.isa.dtypes import DTYPES
from tvm_neuron.program import DramTensor
from tvm_neuron.sim.access import Access

Array = NDArray[Any]
# Partitions lie this much further apart than their size: a power of two would put a column of one byte range into one
# set of the host's cache.
_PITCH_PAD_BYTES = 64
NAN_BYTE = 0xFF  # NaN in bfloat16, float16 and float32


class Memory:
    """Bytes of one core's memories. Weights are bound where they lie, never copied. `resident` are the bytes of each
    SBUF partition that outlive a run; what was never written consists of `blank` bytes.

    Raises:
        ProgramError: a weight is missing or doesn't have the tensor's dtype and shape; the host's memory is smaller.
    """

    def __init__(
        self, device: Device, tensors: Sequence[DramTensor], weights: Mapping[str, Array], blank: int = NAN_BYTE
    ) -> None:
        self.blank = blank
        self.tensors = tuple(tensors)
        self.resident = range(0)
        self.pitch_bytes = {
            "sbuf": device.sbuf_bytes_per_partition + _PITCH_PAD_BYTES,
            "psum": device.psum_bytes_per_partition + _PITCH_PAD_BYTES,
        }
        _check_room(device, sum(self.pitch_bytes.values()), self.tensors)
        self._bytes: dict[str | int, NDArray[np.uint8]] = {
            space: np.empty(device.partitions * pitch, np.uint8) for space, pitch in self.pitch_bytes.items()
        }
        for index, tensor in enumerate(self.tensors):
            if tensor.kind == "weight":
                self._bytes[index] = _flat(tensor, weights)
            else:
                self._bytes[index] = np.empty(tensor.size_bytes, np.uint8)

    def reset(self, inputs: Mapping[str, Array]) -> None:
        """Forgets everything but the weights and what is resident, and takes the inputs.

        Raises:
            InputError: an input is missing, superfluous, or doesn't have the tensor's dtype and shape.
        """
        names = [tensor.name for tensor in self.tensors if tensor.kind == "input"]
        if extra := sorted(set(inputs) - set(names)):
            raise InputError(f"the program has no input '{extra[0]}'; its inputs are {', '.join(names)}")
        self.forget()
        for index, tensor in enumerate(self.tensors):
            if tensor.kind == "input":
                self._bytes[index][:] = _flat(tensor, inputs)

    def forget(self) -> None:
        """All but the weights, the inputs and what is resident becomes blank."""
        for place, memory in self._bytes.items():
            if place == "sbuf":
                rows = memory.reshape(-1, self.pitch_bytes["sbuf"])
                rows[:, : self.resident.start] = self.blank
                rows[:, self.resident.stop :] = self.blank
            elif isinstance(place, str) or self.tensors[place].kind in ("output", "scratch"):
                memory.fill(self.blank)

    def keep(self, resident: range) -> None:
        """Has what now lies in these bytes of each SBUF partition outlive all runs."""
        self.resident = resident
        self._kept = self._resident_rows().copy()

    def check_resident(self) -> None:
        """What is resident is as it was loaded.

        Raises:
            ProgramError: it is not.
        """
        if self.resident and not np.array_equal(self._resident_rows(), self._kept):
            rows, places = np.nonzero(self._resident_rows() != self._kept)
            raise ProgramError(
                f"the run changed byte {self.resident.start + places[0]} of SBUF partition {rows[0]}, which was loaded "
                "once for all runs"
            )

    def _resident_rows(self) -> NDArray[np.uint8]:
        rows = self._bytes["sbuf"].reshape(-1, self.pitch_bytes["sbuf"])
        return rows[:, self.resident.start : self.resident.stop]

    def outputs(self) -> dict[str, Array]:
        """Copies of the output tensors."""
        return {
            tensor.name: self._bytes[index].copy().view(DTYPES[tensor.dtype]).reshape(tensor.shape)
            for index, tensor in enumerate(self.tensors)
            if tensor.kind == "output"
        }

    def view(self, access: Access, address: int, lead: tuple[tuple[int, int], ...] = ()) -> Array:
        """The bytes of `access` from `address` on as an array; `lead` are (count, step) of loops as leading axes."""
        shape = (*(count for count, _ in lead), *access.shape)
        strides = (*(step for _, step in lead), *access.strides)
        return np.ndarray(shape, access.dtype, self._bytes[access.place], address, strides)


def _check_room(device: Device, pitch_bytes: int, tensors: Sequence[DramTensor]) -> None:
    """A file can ask for any amount; what the host can't hold is refused before it is touched."""
    needed = device.partitions * pitch_bytes + sum(t.size_bytes for t in tensors if t.kind != "weight")
    there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if needed > there:
        raise ProgramError(f"SBUF, PSUM and tensors take {needed} bytes; this machine has {there}: use a smaller batch")


def _flat(tensor: DramTensor, values: Mapping[str, Array]) -> NDArray[np.uint8]:
    """The bytes of the array given for `tensor`."""
    refuse = InputError if tensor.kind == "input" else ProgramError
    if tensor.name not in values:
        raise refuse(f"{tensor.kind} '{tensor.name}' is missing; the program needs {_signature(tensor)}")
    value = values[tensor.name]
    if value.dtype != DTYPES[tensor.dtype] or tuple(value.shape) != tuple(tensor.shape):
        raise refuse(
            f"{tensor.kind} '{tensor.name}' is {value.dtype}{list(value.shape)}; the program needs {_signature(tensor)}"
        )
    return np.ascontiguousarray(value).reshape(-1).view(np.uint8)


def _signature(tensor: DramTensor) -> str:
    return f"{tensor.dtype}{list(tensor.shape)}"
