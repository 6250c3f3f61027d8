"""Tuning: what the search at -O3 may choose, because no rule tells what is best for every network."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

from tvm_neuron.allocation.layouts import aligned
from tvm_neuron.errors import OptionError
from tvm_neuron.hw import Device


@dataclass(frozen=True)
class Tuning:
    """How SBUF is shared out. More for weights lets them come earlier, more for tensors spills fewer of them.

    A kernel that works through DRAM tensors is cut into strips of at most 1 / `strip_share` of the memory for tensors.

    Raises:
        OptionError: a share is not at least 1.
    """

    weights_share: int = 3  # 1 / this of each partition is kept for weights on their way to the PE array
    strip_share: int = 5

    def __post_init__(self) -> None:
        if min(self.weights_share, self.strip_share) < 1:
            raise OptionError(f"{self}: both must be at least 1")

    def weights_bytes(self, device: Device) -> int:
        """How much of each SBUF partition is kept for weights on their way to the PE array."""
        return aligned(device.sbuf_bytes_per_partition // self.weights_share)

    def others(self, name: str) -> Iterator["Tuning"]:
        """The same with every other candidate for one of the fields."""
        for value in CANDIDATES[name]:
            if value != getattr(self, name):
                yield replace(self, **{name: value})


USUAL = Tuning()
CANDIDATES = {"weights_share": (3, 4, 6, 2), "strip_share": (5, 3, 8)}
assert list(CANDIDATES) == [field.name for field in fields(Tuning)]
