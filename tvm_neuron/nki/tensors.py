"""Tensors: what a kernel holds in memory, with no addresses yet."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from numpy.typing import NDArray

from tvm_neuron.hw import Device
from tvm_neuron.nki.dialects import Dialect
from tvm_neuron.nki.source import place, wrong
from tvm_neuron.nki.view import ZERO, Axis, Tensor, View

Array = NDArray[Any]
Address = tuple[int, int]  # first partition, first byte of it


@dataclass
class Tensors:
    """The tensors of one launch of a kernel on `device`; `views` is the class of the views that the kernel gets."""

    device: Device
    dialect: Dialect
    views: type[View] = View
    tensors: list[Tensor] = field(default_factory=list)
    shapes: dict[int, tuple[int, ...]] = field(default_factory=dict)  # of tensors in device memory
    constants: dict[int, Array] = field(default_factory=dict)
    shared: list[View] = field(default_factory=list)  # tensors that all instances share, in the order of their calls
    next_shared: int = 0

    def tensor(
        self, shape: Sequence[int], dtype: str, memory: str, name: str = "", partition_axis: int = 0, kind: str = ""
    ) -> View:
        """A new tensor, which holds nothing yet."""
        if not shape:
            raise wrong(
                "a tile without axes: index by slices (t[0:1, 0:1]); what a tile holds is known on the core only, so "
                "that nl.where chooses by it, not if"
            )
        if any(count < 1 for count in shape):
            raise wrong(f"a tensor of shape {list(shape)}; every axis must be at least 1")
        number = len(self.tensors)
        if memory == "hbm":
            made = Tensor(number, name, memory, dtype, 1, 1, prod(shape), kind or "scratch", place())
            self.shapes[number] = tuple(shape)
            axes = _contiguous(shape, 2)
        else:
            blocks, partitions, free = shape[:partition_axis], shape[partition_axis], shape[partition_axis + 1 :]
            if partitions > self.device.partitions:
                raise wrong(
                    f"a tile of shape {list(shape)} has {partitions} partitions; {self.device.name} has "
                    f"{self.device.partitions}: use smaller tiles, or mark the partitions with par_dim"
                )
            made = Tensor(number, name, memory, dtype, prod(blocks), partitions, prod(free), made=place())
            axes = [*_contiguous(blocks, 0), ((0, 1, 0), partitions), *_contiguous(free, 2)]
        self.tensors.append(made)
        return self.views(made, ZERO, axes)

    def blank(self, memory: str, dtype: str, partitions: int, elems: int) -> int:
        """The number of a new tensor [partitions, elems] that no call of the kernel's makes."""
        made = self.tensor((partitions, elems), dtype, memory, "spilled" if memory == "hbm" else "")
        made.tensor.name += str(made.tensor.number) if memory == "hbm" else ""
        return made.tensor.number

    @property
    def is_placed(self) -> bool:
        """Whether the kernel gives addresses to its tiles."""
        return any(tensor.addresses for tensor in self.tensors)

    def constant(self, values: Array, dtype: str) -> View:
        """A tensor in device memory that holds `values`."""
        found = self.tensor(values.shape, dtype, "hbm", kind="weight")
        self.constants[found.tensor.number] = values
        return found

    def share(self, shape: tuple[int, ...], dtype: str, name: str) -> View:
        """A tensor in device memory that is one for all instances of the grid: the same call gives the same."""
        at, self.next_shared = self.next_shared, self.next_shared + 1
        if at == len(self.shared):
            self.shared.append(self.tensor(shape, dtype, "hbm", name))
        found = self.shared[at]
        if (found.shape, found.tensor.dtype) != (shape, dtype):
            raise wrong(f"shared tensor {at} is {dtype}{list(shape)} here; in another instance it is {found}")
        return found


def _contiguous(shape: Sequence[int], part: int) -> list[Axis]:
    axes, step = list[Axis](), 1
    for count in reversed(shape):
        vector = [0, 0, 0]
        vector[part] = step
        axes.append(((vector[0], vector[1], vector[2]), count))
        step *= count
    return axes[::-1]
