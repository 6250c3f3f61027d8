"""Instance: a machine with several chips, and the links between them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tvm_neuron.errors import DeviceError
from tvm_neuron.hw.device import Device

_TABLE = Path(__file__).parent / "instances.json"


@dataclass(frozen=True, kw_only=True)
class Instance:
    """`chips` chips in a chain, each with the cores of a device; `sources` says where each number is from."""

    name: str
    chips: int
    cores_per_chip: int
    link_bytes_per_second: int  # through the port between two neighbours, in each direction
    chip_dram_bytes_per_second: int  # what all cores of a chip can draw together
    sources: Mapping[str, str] = field(repr=False, compare=False)

    @property
    def cores(self) -> int:
        """NeuronCores of the whole instance."""
        return self.chips * self.cores_per_chip

    def chip_of(self, core: int) -> int:
        """The chip on which a core is, both counted from 0."""
        return core // self.cores_per_chip


def load_instance(name: str, device: Device) -> Instance:
    """The instance `name` (`inf1.6xlarge`, ...) with chips of `device`; "" is the largest of the device's family.

    Raises:
        DeviceError: there is no such instance, or the device is of no known family and no name is given.
    """
    families = _families()
    family, _, size = name.partition(".")
    if name:
        check_instance(name)
    else:
        family = device.name
        if not is_in_instance(device):
            raise DeviceError(
                f"device '{device.name}' is in no known instance, so the links between its chips aren't known: name an "
                f"instance whose links count, one of {', '.join(instance_names())}"
            )
        sizes = families[family]["chips"]
        size = max(sizes, key=lambda key: sizes[key])
    row = families[family]
    numbers = {key: entry for key, entry in row.items() if key != "chips"}
    return Instance(
        name=f"{family}.{size}",
        chips=row["chips"][size],
        cores_per_chip=device.cores_per_chip,
        sources={key: entry["source"] for key, entry in numbers.items()},
        **{key: entry["value"] for key, entry in numbers.items()},
    )


def is_in_instance(device: Device) -> bool:
    """Whether there are known instances with chips of this device."""
    return device.name in _families()


def check_instance(name: str) -> None:
    """Raises DeviceError unless an instance of that name is known."""
    if name not in instance_names():
        raise DeviceError(f"unknown instance '{name}': take one of {', '.join(instance_names())}")


def instance_names() -> list[str]:
    """All known instances, the smaller of a family first."""
    return [f"{family}.{size}" for family, row in _families().items() for size in row["chips"]]


@cache
def _families() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(_TABLE.read_text())
    return found
