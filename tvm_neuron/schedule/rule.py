"""Rule: how one family of blocks becomes a kernel; rules are tried in order and each refusal keeps its reason."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Protocol

from tvm_neuron.errors import CompileError, UnschedulableError
from tvm_neuron.hw import Device
from tvm_neuron.schedule.graph import Block
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.tensor import Tensor


@dataclass(frozen=True)
class Context:
    """What a rule may look at besides the block: the device, and which dimension lies on the partitions."""

    device: Device
    partition_of: Mapping[Tensor, int]


@dataclass(frozen=True)
class Refusal:
    """Why a rule does not take a block."""

    reason: str


class Rule(Protocol):
    """A rule has a name for reports and one method."""

    name: str

    def apply(self, block: Block, context: Context) -> Kernel | Refusal:
        """The kernel for the block, or why this rule has none."""


def load_rules() -> tuple[Rule, ...]:
    """All rules of the installed entry points `tvm_neuron.schedules`, in the order of the entry points' names.

    Raises:
        CompileError: none is installed.
    """
    found = sorted(entry_points(group="tvm_neuron.schedules"), key=lambda entry: entry.name)
    rules = tuple(rule for entry in found for rule in entry.load())
    if not rules:
        raise CompileError("no schedules are installed: install tvm_neuron with its package tvm_neuron_schedules")
    return rules


def apply_rules(block: Block, rules: Sequence[Rule], context: Context) -> Kernel:
    """The kernel of the first rule that takes the block.

    Raises:
        UnschedulableError: all refuse; the message holds each one's reason.
    """
    refusals = []
    for rule in rules:
        found = rule.apply(block, context)
        if isinstance(found, Kernel):
            return found
        refusals.append(f"{rule.name}: {found.reason}")
    reason = f"no schedule for it on {context.device.name} ({'; '.join(refusals)})"
    raise UnschedulableError(f"{block.origin}: {reason}", block.origin.name, reason)
