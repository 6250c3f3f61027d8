"""Trace: what a kernel does, as instructions in the order of its calls, on memory that has no addresses yet.

A call that gives a tile is held back until the next one: where its tile is assigned at once (`t[i] = f(...)`), the
instruction writes there. If the tile is read later all the same, it is written first, and copied there from it.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from tvm_neuron.hw import Device, load_device
from tvm_neuron.nki.carried import Iteration
from tvm_neuron.nki.emission import Emission, Held, Result
from tvm_neuron.nki.index import as_mask
from tvm_neuron.nki.source import blamed, place, wrong
from tvm_neuron.nki.tensors import Address
from tvm_neuron.nki.view import View

USUAL_CHIP = "trn1"


@dataclass(eq=False)
class Turn:
    """A loop whose iterations may run in any order, and which of them runs."""

    at: int = 0


@dataclass
class Trace(Emission):
    """What one launch of a kernel does, for each instance of its grid."""

    grid: tuple[int, ...] = ()
    program: tuple[int, ...] = ()  # which instance of the grid runs
    turns: list[Turn] = field(default_factory=list)  # loops that run now, the outermost first
    placements: int = 0  # tensors that the kernel has placed, as if each loop's body were evaluated once

    def __post_init__(self) -> None:
        super().__post_init__()
        self._held: Held | None = None
        self._placed: dict[tuple[int, str], list[Address]] = {}
        self._stored: dict[Hashable, list[tuple[Turn, int]]] = {}  # places, and in which iterations

    def tensor(self, *args: Any, **words: Any) -> View:
        """A new tensor, which holds nothing yet."""
        made = super().tensor(*args, **words)
        self._carried.make(made.tensor.number, self._iteration())
        return made

    def _iteration(self) -> Iteration:
        return tuple((turn, turn.at) for turn in self.turns)

    def placed(self, addresses: Callable[[], list[Address]]) -> list[Address]:
        """The addresses of a tensor's blocks: in the further iterations of a loop those of the first, see `Dialect`."""
        if not self.dialect.places_once:
            return addresses()
        key, self.placements = (self.placements, place()), self.placements + 1
        if key not in self._placed:
            self._placed[key] = addresses()
        return self._placed[key]

    def check_apart(self, target: View) -> None:
        """Refuses to store to a place to which another iteration of a loop stored that may run at the same time."""
        if not self.dialect.stores_apart:
            return
        key, now = (target.tensor.number, target.start, target.axes), [(turn, turn.at) for turn in self.turns]
        for (turn, at), (other, before) in zip(now, self._stored.get(key, ()), strict=False):
            if turn is other and at != before:
                raise wrong(
                    f"{target} is stored in iterations {before} and {at} of an affine_range, which may run in any "
                    "order: index it by the loop, store after the loop, or use sequential_range"
                )
        self._stored[key] = now

    def hold(self, result: Result, mask: Any = None) -> View:
        """The tile of a call's result, which is written when it is known where."""
        self.settle()
        memory = result.memory
        own = self.tensor(result.shape, result.dtype, memory)
        self._held = Held(own, result, as_mask(mask), place())
        return own

    def settle(self) -> None:
        """Writes what is held back."""
        held, self._held = self._held, None
        if held:
            self._write(held, held.own)

    def assign(self, target: View, value: View) -> bool:
        """Has what is held back written to `target`, if that is `value`; whether it is."""
        held = self._held
        if held is None or held.own is not value:
            return False
        if held.result.memory == "psum" != target.tensor.memory:
            return False  # the Tensor engine writes there only
        self._held = None
        held.target = target
        self._write(held, target)
        held.group = self.groups[-1]
        self._moved[value.tensor.number] = held
        return True

    def accumulate(self, target: View, value: View) -> bool:
        """Has what is held back added to `target`, if that is `value` and a product; whether it is."""
        held = self._held
        if held is None or held.own is not value or held.result.add is None or target.tensor.memory != "psum":
            return False
        self._held = None
        self._at = held.at
        self.groups.append([])
        with blamed(held.at):
            held.result.add(target, held.mask)
        return True

    def do(self, result: Result, target: View, mask: Any = None) -> None:
        """Writes a result to `target` now.

        Raises:
            KernelError: it is no window into a tensor.
        """
        if not isinstance(target, View):
            raise wrong(f"the destination is {target}; it is a tensor or a part of one, at places known when traced")
        self.settle()
        self._write(Held(target, result, as_mask(mask), place()), target)

    def _write(self, held: Held, target: View) -> None:
        self._at = held.at
        self.groups.append([])
        with blamed(held.at):
            held.result.write(target, held.mask)


_traces: list[Trace] = []


def current() -> Trace:
    """The trace of the kernel that runs.

    Raises:
        KernelError: none runs.
    """
    if not _traces:
        raise wrong("a call of the kernel language outside of a kernel: decorate the function with nki.jit and call it")
    return _traces[-1]


def target() -> Device:
    """The chip that a kernel is traced for; while none runs, the one that is taken by default."""
    return _traces[-1].device if _traces else load_device(USUAL_CHIP)


def is_tracing() -> bool:
    """Whether a kernel runs."""
    return bool(_traces)


def begin(trace: Trace) -> None:
    """Has calls go to `trace` until `end`."""
    _traces.append(trace)


def end() -> None:
    """The opposite of `begin`."""
    _traces.pop()
