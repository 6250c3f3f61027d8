"""Direct allocation: addresses that a kernel gives to the logical tiles of a tensor (`nki.compiler.sbuf`, `.psum`)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from tvm_neuron.nki.source import wrong
from tvm_neuron.nki.tensors import Address
from tvm_neuron.nki.trace import current

Index = tuple[int, ...]


@dataclass(frozen=True)
class Placed:
    """A buffer whose tiles lie where `address` says, of (block index, partitions, bytes of a partition)."""

    memory: str
    address: Callable[[Index, int, int], Address]

    def addressed(self, index: Index, partitions: int, size: int) -> Address:
        """Where a tile lies.

        Raises:
            KernelError: outside of the memory.
        """
        start, byte = self.address(index, partitions, size)
        device = current().device
        room = device.sbuf_bytes_per_partition if self.memory == "sbuf" else device.psum_bytes_per_partition
        if not 0 <= byte <= room - size or not 0 <= start <= device.partitions - partitions:
            which = f"tile {list(index)}" if index else "a tile"
            raise wrong(
                f"{which} is placed at bytes {byte} to {byte + size} of partitions {start} to "
                f"{start + partitions}; {self.memory.upper()} of {device.name} has {room} bytes in {device.partitions}"
            )
        return start, byte


def placed_at(memory: Any, given: Any) -> Placed:
    """Where `address=` of a later version says: (first partition, byte in each), counted from the memory's start.

    Raises:
        KernelError: it is no such pair, or for device memory.
    """
    if memory not in ("sbuf", "psum"):
        raise wrong(f"address={given} with buffer={memory}; places are given in nl.sbuf and nl.psum")
    pair = tuple(given) if isinstance(given, Sequence) else (given,)
    if len(pair) != 2 or not all(hasattr(each, "__index__") for each in pair):
        raise wrong(f"address={given}; it is (first partition, byte of a partition), two whole numbers")
    return Placed(memory, lambda *_: (int(pair[0]), int(pair[1])))


def _alloc_sbuf(func: Callable[..., Any]) -> Placed:
    """func(idx, pdim_size, fdim_size) gives (first partition, byte address)."""

    def address(index: Index, partitions: int, size: int) -> Address:
        start, byte = func(idx=index, pdim_size=partitions, fdim_size=size)
        return int(start), int(byte)

    return Placed("sbuf", address)


def _alloc_psum(func: Callable[..., Any]) -> Placed:
    """func(idx, pdim_size, fdim_size) gives (bank, first partition, byte address in the bank)."""

    def address(index: Index, partitions: int, size: int) -> Address:
        bank, start, byte = func(idx=index, pdim_size=partitions, fdim_size=size)
        return int(start), int(bank) * current().device.psum_bank_bytes + int(byte)

    return Placed("psum", address)


def _mod_sbuf(
    *, base_addr: int, base_partition: int = 0, num_par_tiles: Sequence[int] = (), num_free_tiles: Sequence[int] = ()
) -> Placed:
    """Tiles in turn, from an address on."""

    def address(index: Index, partitions: int, size: int) -> Address:
        down, along = _turn(index, num_par_tiles), _turn(index, num_free_tiles)
        return base_partition + down * partitions, base_addr + along * size

    return Placed("sbuf", address)


def _mod_psum(
    *,
    base_bank: int,
    base_addr: int = 0,
    base_partition: int = 0,
    num_bank_tiles: Sequence[int] = (),
    num_par_tiles: Sequence[int] = (),
    num_free_tiles: Sequence[int] = (),
) -> Placed:
    """Tiles in turn, from a bank on."""

    def address(index: Index, partitions: int, size: int) -> Address:
        bank = base_bank + _turn(index, num_bank_tiles)
        byte = bank * current().device.psum_bank_bytes + base_addr + _turn(index, num_free_tiles) * size
        return base_partition + _turn(index, num_par_tiles) * partitions, byte

    return Placed("psum", address)


def _turn(index: Index, tiles: Sequence[int]) -> int:
    """Which of so many physical tiles along each block axis has its turn, in row-major order."""
    if not index:
        return 0  # there is one tile
    tiles = tuple(tiles) or (1,) * len(index)
    if len(tiles) != len(index):
        raise wrong(f"numbers of tiles {list(tiles)} for {len(index)} block axes; give one for each")
    found = 0
    for at, count in zip(index, tiles, strict=True):
        found = found * count + at % count
    return found


sbuf = SimpleNamespace(alloc=_alloc_sbuf, mod_alloc=_mod_sbuf, auto_alloc=lambda: "sbuf")
psum = SimpleNamespace(alloc=_alloc_psum, mod_alloc=_mod_psum, auto_alloc=lambda: "psum")
