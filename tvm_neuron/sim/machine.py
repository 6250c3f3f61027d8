"""Machine: runs a program's data on the modelled core."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.errors import PositionError
from tvm_neuron.hw import Device
from tvm_neuron.isa.scratch import keep_freed_memory
from tvm_neuron.program import Node, Program
from tvm_neuron.program.residents import check_residents, resident_bytes
from tvm_neuron.sim.action import Action
from tvm_neuron.sim.bounds import check_all_bounds
from tvm_neuron.sim.memory import NAN_BYTE, Memory
from tvm_neuron.sim.plan import plan
from tvm_neuron.sim.strict import run_strict

Array = NDArray[Any]
MODES = ("nest", "step", "strict")


class Machine:
    """One core with a program and its weights; can run any number of times, each on memory that holds nothing yet but
    what the prologue put into SBUF when the program was loaded; what holds nothing consists of `blank` bytes.

    Modes: "nest" runs whole loop nests at once, "step" one instruction at a time, "strict" the engines' streams side
    by side in an unfavourable order, DMA as late as it may. A program without races gives the same bits in all three.

    Raises:
        ProgramError: a tile lies outside its memory, or a weight is missing or not as the tensor table says.
    """

    def __init__(
        self, program: Program, device: Device, weights: Mapping[str, Array], prologue: tuple[Node, ...] = (),
        blank: int = NAN_BYTE,
    ) -> None:  # fmt: skip
        check_all_bounds(program, device)
        keep_freed_memory()
        self.program = program
        self.memory = Memory(device, program.tensors, weights, blank)
        self._plans: dict[str, list[Action]] = {}
        if prologue:
            self._load(program.with_body(prologue), device)

    def run(self, inputs: Mapping[str, Array], mode: str = "nest", seed: int = 0) -> dict[str, Array]:
        """The output tensors for `inputs`; `seed` varies the order in which "strict" lets the engines run.

        Raises:
            InputError: an input is missing, superfluous or not as the tensor table says.
            PositionError: an index computed at run time lies outside of its tensor; names the model operator.
            ProgramError: in "strict" mode, the engines wait for each other without end.
        """
        if mode not in MODES:
            raise ValueError(f"mode '{mode}' is none of {', '.join(MODES)}")
        self.memory.reset(inputs)
        with np.errstate(all="ignore"):
            try:
                self._run(mode, seed)
            except PositionError as error:
                raise PositionError(f"{self.program.origins[error.origin]}: {error}", error.origin) from None
        return self.memory.outputs()

    def _run(self, mode: str, seed: int) -> None:
        if mode == "strict":
            run_strict(self.program, self.memory, seed)
            self.memory.check_resident()
            return
        for action in self.plan(mode):
            action.run(self.memory, ())

    def _load(self, prologue: Program, device: Device) -> None:
        """Runs what runs once, as late and out of order as its waits allow."""
        check_all_bounds(prologue, device)
        check_residents(prologue, self.program)
        with np.errstate(all="ignore"):
            self.memory.forget()
            run_strict(prologue, self.memory)
        self.memory.keep(resident_bytes(prologue))

    def plan(self, mode: str = "nest") -> list[Action]:
        """How `mode` takes the program apart; made once."""
        if mode not in self._plans:
            self._plans[mode] = plan(self.program.body, self.memory.pitch_bytes, mode == "nest")
        return self._plans[mode]
