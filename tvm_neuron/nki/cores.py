"""Grids over several cores: values are those of a plain grid; each core goes through its own instances in turn."""

from collections.abc import Sequence
from math import prod
from typing import Any, Self

from tvm_neuron.hw import Device
from tvm_neuron.nki.source import wrong


class Spread(int):
    """A size of a grid whose instances are spread over so many cores, the next one on the next core."""

    cores: int

    def __new__(cls, size: int, cores: int) -> Self:
        """`size` instances."""
        found = super().__new__(cls, size)
        found.cores = cores
        return found

    def __mul__(self, other: int) -> "Spread":
        return Spread(int(self) * int(other), self.cores * cores_of(other))

    __rmul__ = __mul__


class nc(Spread):  # noqa: N801 - the language's own name
    """So many cores, as a size of a grid: `kernel[nl.nc(2)]`, `kernel[4 * nl.nc(2)]`."""

    def __new__(cls, count: int) -> Self:
        """An instance on each."""
        return super().__new__(cls, count, count)


def spmd_dim(*sizes: Any) -> Spread:
    """An axis of a grid whose instances are spread over cores: as many as the product; the last size is that of cores.

    Raises:
        KernelError: the sizes are no whole numbers from 1 on.
    """
    for size in sizes:
        if not hasattr(size, "__index__") or size < 1:
            raise wrong(f"spmd_dim of {list(sizes)}: give whole numbers from 1 on, cores as nl.nc(n) last")
    return Spread(prod(map(int, sizes)), prod(map(cores_of, sizes)))


def launched(sizes: Sequence[int], is_of_cores: bool) -> tuple[int, ...]:
    """A grid as a launch gives it, where 0 counts as 1; its numbers are those of cores if it names none otherwise."""
    is_of_cores = is_of_cores and not any(isinstance(size, Spread) for size in sizes)
    found = (size if isinstance(size, Spread) else max(1, int(size)) for size in sizes)
    return tuple(nc(size) if is_of_cores else size for size in found)


def check_cores(name: str, grid: Sequence[int], device: Device) -> None:
    """That a chip has the cores of a grid, which share its DRAM.

    Raises:
        KernelError: it has fewer.
    """
    cores = prod(map(cores_of, grid))
    if cores > device.cores_per_chip:
        raise wrong(
            f"kernel '{name}' is launched on {cores} cores; a chip of {device.name} has {device.cores_per_chip}: "
            "launch it on so many (kernel[n]) and loop inside it, or on a grid of instances one after another on each "
            "core (kernel[m * nl.nc(n)])"
        )


def cores_of(size: int) -> int:
    """Over how many cores an axis of a grid is spread."""
    return size.cores if isinstance(size, Spread) else 1


def core_of(program: Sequence[int], grid: Sequence[int]) -> int:
    """The core on which an instance of a grid runs: the inner part of its place along each axis."""
    found = 0
    for place, size in zip(program, grid, strict=True):
        found = found * cores_of(size) + place % cores_of(size)
    return found
