"""docs/relay.md, made of the operators' declarations: `python -m tvm_neuron.relay.manual`."""

import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from tvm_neuron.relay.elsewhere import OUT, PLACES, TE_SCHEDULES
from tvm_neuron.relay.op import FAMILIES, OPERATORS
from tvm_neuron.relay.op.declare import Operator
from tvm_neuron.relay.transform import NOTHING_TO_DO

MANUAL = Path(__file__).parents[2] / "docs" / "relay.md"

_INTRODUCTION = """\
# Relay's operators

Made by `python -m tvm_neuron.relay.manual` of the declarations in `tvm_neuron/relay/op`; don't edit. Names, arguments
and defaults are those of TVM 0.18: `nn.conv2d` is called as `relay.nn.conv2d(data, weight, ...)`. What runs on the
NeuronCore, and what on the CPU, is decided as for any model: see [operators.md](operators.md).
"""


def manual() -> str:
    """The page as Markdown."""
    chapters = [line for family in FAMILIES for line in _chapter(family)]
    return "\n".join([_INTRODUCTION, *chapters, *_passes(), *_elsewhere()])


def _passes() -> Iterator[str]:
    yield "## Passes that leave modules as they are"
    yield ""
    yield "They can be run, and instruments see them."
    yield ""
    yield "| pass | why |"
    yield "|---|---|"
    for name, reason in NOTHING_TO_DO.items():
        yield f"| {name} | {reason} |"
    yield ""


def _elsewhere() -> Iterator[str]:
    yield "## Names that are not here"
    yield ""
    yield "The error of each says the same."
    yield ""
    yield "| names | instead |"
    yield "|---|---|"
    for place, hints in PLACES.items():
        for hint, names in hints.items():
            yield f"| {', '.join(f'{place}.{name}' for name in names.split())} | {hint} |"
    for name, hint in OUT.items():
        yield f"| tvm.{name} | {hint} |"
    yield f"| tvm.te.create_schedule | {TE_SCHEDULES} |"
    yield ""


def _chapter(family: ModuleType) -> Iterator[str]:
    yield f"## {(family.__doc__ or '').splitlines()[0].rstrip('.')}"
    yield ""
    yield "| operator | operands | attributes | |"
    yield "|---|---|---|---|"
    for declared in OPERATORS.values():
        if declared.family == family.__name__:
            yield f"| {declared.name} | {', '.join(declared.operands)} | {_attributes(declared)} | {declared.summary} |"
    yield ""


def _attributes(declared: Operator) -> str:
    return ", ".join(
        name if default is inspect.Parameter.empty else f"{name}={default!r}"
        for name, default in declared.attributes.items()
    )


if __name__ == "__main__":
    MANUAL.write_text(manual())
