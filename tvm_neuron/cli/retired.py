"""Options of the original compilers that nothing here needs: accepted, with a note on what does their work."""

import argparse
import sys
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Retired:
    """One option: how many words it takes (a number, or as argparse has it), and why it says nothing here."""

    words: int | str
    why: str


_MEMORY = "activations stay in SBUF, and what finds no room there is spilled by plan"
_SCHEDULER = "the cost model chooses tiles and layouts"
RETIRED = {
    "--batching_en": Retired(0, _SCHEDULER),
    "--rematerialization_en": Retired(0, _MEMORY),
    "--spill_dis": Retired(0, _MEMORY),
    "--spill_depth_limit": Retired(1, _MEMORY),
    "--sb_size": Retired(1, "the SBUF is as large as the target's"),
    "--enable-replication": Retired("?", _SCHEDULER),
    "--topdown": Retired(0, _SCHEDULER),
    "--tensor-layout-heuristics": Retired(1, "layouts are chosen over the whole subgraph"),
    "--enable-experimental-tensorized-scheduler": Retired(0, _SCHEDULER),
    "--enable-experimental-O1": Retired(0, "-O1 is the quick way to compile"),
    "--num-parallel-jobs": Retired(1, "compiling takes seconds"),
    "--enable-fast-context-switch": Retired(0, "weights are read when a model runs for the first time"),
    "--pipeline": Retired("+", "the whole pipeline always runs; disassemble and --logfile show what it made"),
    "--model-type": Retired(1, "schedules follow from a kernel's form, not from the kind of network"),
    "--distribution-strategy": Retired(1, "it is about training"),
    "--enable-mixed-precision-accumulation": Retired(0, "sums are always in float32"),
    "--disable-mixed-precision-accumulation": Retired(0, "sums are always in float32"),
    "--native-int64": Retired(0, "integers of 64 bits are carried exactly or refused"),
    "--implicit-integer-downcast": Retired(0, "integers of 64 bits are carried exactly or refused"),
    "--disable-dge": Retired(0, "descriptors are generated only for computed addresses"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The retired options, which the help does not list one by one."""
    for name, option in RETIRED.items():
        if option.words == 0:
            parser.add_argument(name, action="append_const", const=name, dest="retired", help=argparse.SUPPRESS)
        else:
            parser.add_argument(name, action=_Note, nargs=None if option.words == 1 else option.words, dest="retired",
                                help=argparse.SUPPRESS)  # fmt: skip


def tell(given: list[str] | None) -> None:
    """One line on stderr for each retired option on the command line."""
    for name in dict.fromkeys(given or []):
        print(f"neuron-cc: note: {name} is no longer needed and changes nothing: {RETIRED[name].why}", file=sys.stderr)


class _Note(argparse.Action):
    """Keeps the option's name and forgets its words."""

    def __call__(self, _parser: Any, namespace: argparse.Namespace, _values: Any, option: str | None = None) -> None:
        namespace.retired = [*(namespace.retired or []), option]
