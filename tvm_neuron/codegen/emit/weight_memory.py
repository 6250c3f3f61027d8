"""WeightMemory: the ring of SBUF for weights, which knows what still lies in it, and where each lies in DRAM."""

from collections.abc import Callable, Hashable

from tvm_neuron.codegen.emit.builder import Ring


class WeightMemory:
    """Kernels that run in tiles multiply by the same weights again and again: these are stored, and if they can stay
    in the ring loaded, only once.
    """

    def __init__(self, ring: Ring) -> None:
        self.ring = ring
        self._held: dict[Hashable, tuple[int, int]] = {}  # where it begins and ends
        self._in_dram: dict[Hashable, int] = {}

    @property
    def capacity(self) -> int:
        """Bytes of each partition."""
        return self.ring.capacity

    def find(self, key: Hashable) -> int | None:
        """Where it lies, if nothing was put there since."""
        held = self._held.get(key)
        return None if held is None else held[0]

    def take(self, key: Hashable, size: int) -> int:
        """The place of `size` bytes, which `key` is found at from now on."""
        at = self.ring.take(size)
        self._held = {k: (low, high) for k, (low, high) in self._held.items() if high <= at or low >= at + size}
        self._held[key] = (at, at + size)
        return at

    def in_dram(self, key: Hashable, add: Callable[[], int]) -> int:
        """The index of the tensor in DRAM, which `add` makes the first time."""
        if key not in self._in_dram:
            self._in_dram[key] = add()
        return self._in_dram[key]
