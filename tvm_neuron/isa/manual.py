"""The manual of the instruction set, made from the instruction set: `python -m tvm_neuron.isa.manual`."""

import inspect
import textwrap
from pathlib import Path

from tvm_neuron.isa import ISA, QUEUES
from tvm_neuron.isa.dtypes import CODES
from tvm_neuron.isa.functions import ACTIVATION_NAMES, ALU_NAMES, BITWISE_NAMES
from tvm_neuron.isa.instruction import Instruction
from tvm_neuron.isa.operand import Kind, TileKind

PATH = Path(__file__).parents[2] / "docs" / "isa.md"

_INTRODUCTION = f"""\
# Instruction set

Made by `python -m tvm_neuron.isa.manual` from the classes in `tvm_neuron/isa`; don't edit.

Sizes: P partitions, N elements per partition on the free axes. `compute` is the meaning: it gets what the reading
operands hold, in their order, as float32, and gives what is written, which is then rounded to the dtype of the
destination (to nearest, ties to even; whole numbers saturate). `cost` is in cycles of the instruction's engine (of
DMA: in ns): the first number keeps the engine busy, the second passes until the result can be read.

* Queues: {", ".join(QUEUES)}. Each takes its instructions in order and counts the completed ones; `wait=queue>=n^cap`
  holds an instruction until that queue has completed min(n, cap).
* Element types: {", ".join(CODES)}.
* `origin` is the model operator that an instruction comes from, as an index in the program's table.
* Addresses may move with the loops around an instruction: `64+128*i0`, or around a ring, `64+(+0+128*i0)%1024`.
* A tile `sbuf.bfloat16{{p=0;n=128;at=64;dims=58*8,1*56}}` starts at partition p, has n of them, starts at byte `at` in
  each, and takes `step*count` elements along each free axis, the innermost last. With `skew=54;` before `dims` each
  partition starts 54 bytes behind the one before, which only a DMA can. A tile `dram.float32{{t=0;at=5;...}}`
  lies in tensor t; its `at` counts elements.
* Elementwise operations `op`: {", ".join(ALU_NAMES)}.
* Operations on bits: {", ".join(BITWISE_NAMES)}. What they read stays as it lies in memory.
* Functions: {", ".join(ACTIVATION_NAMES)}.
"""


def manual() -> str:
    """The manual as Markdown."""
    return "\n".join([_INTRODUCTION, *(_chapter(cls) for cls in ISA)])


def layouts() -> str:
    """What is encoded, in order: one line an instruction. A change here is another version of the instruction set."""
    lines = []
    for cls in ISA:
        operands = ", ".join(f"{name}: {_short(kind)}" for name, kind in cls.kinds())
        lines.append(f"0x{cls.opcode:02x} {cls.engine:4} {cls.mnemonic}: origin, waits, {operands}")
    return "\n".join(lines) + "\n"


def _chapter(cls: type[Instruction]) -> str:
    rows = [f"| `{name}` | {kind.describe()} |" for name, kind in cls.kinds()]
    parts = [
        f"## {cls.mnemonic}",
        f"Engine {cls.engine}, opcode 0x{cls.opcode:02x}.",
        f"`{inspect.cleandoc(cls.__doc__ or '')}`",
        "\n".join(["| operand | |", "|---|---|", *rows]),
        "```python\n" + "\n".join(_source(cls, name) for name in ("compute", "cost")) + "```",
    ]
    return "\n\n".join(parts) + "\n"


def _source(cls: type[Instruction], name: str) -> str:
    return textwrap.dedent(inspect.getsource(getattr(cls, name)))


def _short(kind: Kind) -> str:
    unless = f" unless {kind.unless}" if isinstance(kind, TileKind) and kind.unless else ""
    return f"{type(kind).__name__.removesuffix('Kind').lower()} ({kind.describe()}{unless})"


def main() -> None:
    """Writes the manual."""
    PATH.parent.mkdir(exist_ok=True)
    PATH.write_text(manual())


if __name__ == "__main__":
    main()
