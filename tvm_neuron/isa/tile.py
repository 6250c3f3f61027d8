"""Tile and DramTile: the access patterns through which instructions see memory."""

import re
from dataclasses import dataclass
from math import prod

from tvm_neuron.isa.affine import Affine
from tvm_neuron.isa.dtypes import size_bytes

Dims = tuple[tuple[int, int], ...]  # (step in elements, count), outermost first
MAX_FREE_DIMS = 4
MAX_DRAM_DIMS = 5


def _print_dims(dims: Dims) -> str:
    return ",".join(f"{step}*{count}" for step, count in dims)


def _parse_dims(text: str) -> Dims:
    pairs = [part.split("*") for part in text.split(",")] if text else []
    return tuple((int(step), int(count)) for step, count in pairs)


@dataclass(frozen=True, slots=True)
class Tile:
    """[partitions, *counts] elements of SBUF or PSUM: the same free-axis pattern in each of some partitions.

    A transfer has an address for each partition: with a `skew`, each starts so many bytes behind the one before.
    """

    space: str  # "sbuf" or "psum"
    dtype: str
    partition: Affine
    partitions: int
    offset: Affine  # bytes from the start of each partition
    dims: Dims
    skew: int = 0

    @property
    def shape(self) -> tuple[int, ...]:
        """[partitions, *free counts]."""
        return (self.partitions, *(count for _, count in self.dims))

    @property
    def free_elems(self) -> int:
        """Elements in each partition."""
        return prod(count for _, count in self.dims)

    @property
    def extent_bytes(self) -> int:
        """Bytes from the first byte touched in any partition to one past the last (steps are never negative)."""
        elems = sum(step * (count - 1) for step, count in self.dims) + 1
        return elems * size_bytes(self.dtype) + self.skew * (self.partitions - 1)

    def __str__(self) -> str:
        skew = f"skew={self.skew};" if self.skew else ""
        return (
            f"{self.space}.{self.dtype}{{p={self.partition};n={self.partitions};"
            f"at={self.offset};{skew}dims={_print_dims(self.dims)}}}"
        )


@dataclass(frozen=True, slots=True)
class DramTile:
    """[*counts] elements of one DRAM tensor."""

    tensor: int  # index in the program's tensor table
    dtype: str
    offset: Affine  # elements from the tensor's start
    dims: Dims

    @property
    def shape(self) -> tuple[int, ...]:
        """[*counts]."""
        return tuple(count for _, count in self.dims)

    @property
    def elems(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    def __str__(self) -> str:
        return f"dram.{self.dtype}{{t={self.tensor};at={self.offset};dims={_print_dims(self.dims)}}}"


_TILE = re.compile(r"(sbuf|psum)\.(\w+)\{p=([^;]*);n=(\d+);at=([^;]*);(?:skew=(\d+);)?dims=([^}]*)\}")
_DRAM = re.compile(r"dram\.(\w+)\{t=(\d+);at=([^;]*);dims=([^}]*)\}")


def parse_tile(text: str) -> Tile | DramTile:
    """Reads what `str` of a Tile or DramTile wrote.

    Raises:
        ValueError: it is neither.
    """
    if chip := _TILE.fullmatch(text):
        space, dtype, partition, count, at, skew, dims = chip.groups()
        place = Affine.parse(partition), int(count), Affine.parse(at)
        return Tile(space, dtype, *place, _parse_dims(dims), int(skew or 0))
    if dram := _DRAM.fullmatch(text):
        dtype, tensor, at, dims = dram.groups()
        return DramTile(int(tensor), dtype, Affine.parse(at), _parse_dims(dims))
    raise ValueError(f"'{text}' is no tile; write sbuf.bfloat16{{p=0;n=128;at=0;dims=1*512}} or dram.float32{{...}}")
