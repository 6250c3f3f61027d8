"""The NeuronCores that a process may use, and their groups, as the environment variables of the original runtime say.

NEURON_RT_VISIBLE_CORES   cores by number: "0-2", "1,3"; wins over NEURON_RT_NUM_CORES
NEURON_RT_NUM_CORES       how many cores, the first ones; 0: all
NEURONCORE_GROUP_SIZES    groups over these cores, in order: "2,4,3"; "4x1": four groups of one core each
NEURON_MAX_NUM_INFERS     requests that a model holds at once; negative counts as positive, 0 as 1
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from tvm_neuron.errors import ServiceError

_SPARE_INFERS = 3  # more than its cores: what waits on the host while all cores work


@dataclass
class Group:
    """Cores that models are loaded onto together; `used` are those of loaded models."""

    cores: tuple[int, ...]
    used: set[int] = field(default_factory=set)

    def take(self, count: int) -> tuple[int, ...] | None:
        """The first free cores, now used; None if there are fewer than `count`."""
        free = [core for core in self.cores if core not in self.used][:count]
        if len(free) < count:
            return None
        self.used |= set(free)
        return tuple(free)

    def release(self, cores: tuple[int, ...]) -> None:
        """Give cores back."""
        self.used -= set(cores)


def visible_cores(total: int, environment: Mapping[str, str] = os.environ) -> tuple[int, ...]:
    """The cores of an instance with `total` of them that this process may use.

    Raises:
        ServiceError: a variable asks for cores that are not there, or is none of the forms above.
    """
    listed = environment.get("NEURON_RT_VISIBLE_CORES", "").strip()
    if listed:
        return tuple(dict.fromkeys(core for part in listed.split(",") for core in _range(part.strip(), total)))
    count = _number("NEURON_RT_NUM_CORES", environment.get("NEURON_RT_NUM_CORES", "0"))
    if not 0 <= count <= total:
        raise ServiceError(f"NEURON_RT_NUM_CORES is {count}: the instance has {total}; ask for 0 (all) to {total}")
    return tuple(range(count or total))


def make_groups(cores: tuple[int, ...], environment: Mapping[str, str] = os.environ) -> list[Group]:
    """The groups of the visible cores: one of all of them where nothing is said.

    Raises:
        ServiceError: the groups need more cores than there are, or the variable is none of the forms above.
    """
    text = environment.get("NEURONCORE_GROUP_SIZES", "").strip()
    if not text:
        return [Group(cores)]
    sizes = [size for part in text.split(",") for size in _sizes(part.strip(), text)]
    if sum(sizes) > len(cores):
        raise ServiceError(
            f"NEURONCORE_GROUP_SIZES '{text}' needs {sum(sizes)} NeuronCores; {len(cores)} are visible: make the "
            "groups smaller or fewer, or take a larger instance"
        )
    starts = [sum(sizes[:index]) for index in range(len(sizes))]
    return [Group(cores[start : start + size]) for start, size in zip(starts, sizes, strict=True)]


def most_requests(cores: int, environment: Mapping[str, str] = os.environ) -> int:
    """How many requests a model on so many cores holds at once, waiting and running.

    Raises:
        ServiceError: NEURON_MAX_NUM_INFERS is no whole number.
    """
    text = environment.get("NEURON_MAX_NUM_INFERS", "").strip()
    return max(abs(_number("NEURON_MAX_NUM_INFERS", text)), 1) if text else cores + _SPARE_INFERS


def _range(part: str, total: int) -> range:
    first, _, last = part.partition("-")
    low = _number("NEURON_RT_VISIBLE_CORES", first)
    high = _number("NEURON_RT_VISIBLE_CORES", last) if last else low
    if not 0 <= low <= high < total:
        raise ServiceError(f"NEURON_RT_VISIBLE_CORES has '{part}': the instance has the NeuronCores 0 to {total - 1}")
    return range(low, high + 1)


def _sizes(part: str, text: str) -> list[int]:
    """`3` is one group of three cores, `4x1` four groups of one."""
    count, times, size = part.rpartition("x")
    found = [_number("NEURONCORE_GROUP_SIZES", size)] * (_number("NEURONCORE_GROUP_SIZES", count) if times else 1)
    if not found or min(found) < 1:
        raise ServiceError(f"NEURONCORE_GROUP_SIZES '{text}': '{part}' is no group; write sizes as '2,4' or '4x1'")
    return found


def _number(variable: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ServiceError(f"{variable}: '{text}' is no whole number") from None
