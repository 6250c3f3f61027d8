"""The manual of the operators, made by trying them: `python -m tvm_neuron.operators.manual` (one to three minutes)."""

import sys
from collections.abc import Iterable
from pathlib import Path

from tvm_neuron.operators.listing import PATH, Listing, Operator, Outcome, read, write

MANUAL = Path(__file__).parents[2] / "docs" / "operators.md"

_INTRODUCTION = """\
# Operators

Made by `python -m tvm_neuron.operators.manual`, which gives small models of one operator each (the cases that the
onnx package tests back ends with, in other dtypes too) to the importer and to the partition; don't edit. So it says
where forms of an operator ran, not what is known of its name. `neuron-cc list-operators` prints the same.

Dtypes are those of the first operand. *Compile time*: all operands are known then. *Refused*: the model is not built.
A reason holds for the form with the attributes in parentheses, and others like it.
"""

_PLACES = {"neuroncore": "NeuronCore", "cpu": "CPU", "compile time": "compile time", "refused": "refused"}


def manual(listings: Iterable[Listing]) -> str:
    """The manual as Markdown."""
    return "\n".join([_INTRODUCTION, *map(_chapter, listings)])


def lines(operator: Operator) -> list[str]:
    """An operator's outcomes as text, one a line."""
    if not operator.outcomes:
        return ["not tried: there is no sample of it"]
    return [_line(outcome) for outcome in operator.outcomes]


def _line(outcome: Outcome) -> str:
    dtypes = ", ".join(outcome.dtypes)
    condition = f", {outcome.condition}" if outcome.condition else ""
    example = f" ({outcome.example})" if outcome.example else ""
    return f"{_PLACES[outcome.where]}: {dtypes}{condition}{example}" + (f": {outcome.reason}" if outcome.reason else "")


def _chapter(listing: Listing) -> str:
    count = sum(operator.is_on_neuroncore for operator in listing.operators)
    head = [
        f"## {listing.framework}\n",
        f"On {listing.device}, {count} of {len(listing.operators)} operators run on the NeuronCore in some form.",
        "For all of them holds:\n",
        *(f"* {constraint}." for constraint in listing.constraints),
        "",
    ]
    for operator in listing.operators:
        head += [f"### {operator.name}\n", *(f"* {_escape(line)}" for line in lines(operator)), ""]
    return "\n".join(head)


def _escape(line: str) -> str:
    return line.replace("*", r"\*").replace("<", "&lt;").replace("_", r"\_")


def main() -> None:
    """Tries all operators again, or with the argument `text` only writes the manual, and writes both files."""
    if sys.argv[1:] != ["text"]:
        from tvm_neuron.operators.survey import survey

        PATH.write_text(write(survey()))
    MANUAL.write_text(manual(read(PATH.read_text())))


if __name__ == "__main__":
    main()
