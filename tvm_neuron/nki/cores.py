"""Grids over several cores: as many instances, whose values are those of a plain grid, one after the other."""

from typing import Any

from tvm_neuron.nki.source import wrong


class nc(int):  # noqa: N801 - the language's own name
    """So many cores, as a size of a grid: `kernel[nl.nc(2)]`, `kernel[4 * nl.nc(2)]`."""


def spmd_dim(*sizes: Any) -> int:
    """An axis of a grid whose instances are spread over cores: as many as the product; the last size is that of cores.

    Raises:
        KernelError: the sizes are no whole numbers from 1 on.
    """
    found = 1
    for size in sizes:
        if not hasattr(size, "__index__") or size < 1:
            raise wrong(f"spmd_dim of {list(sizes)}: give whole numbers from 1 on, cores as nl.nc(n) last")
        found *= int(size)
    return found
