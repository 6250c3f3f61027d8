"""listing: what was found out about a framework's operators, from the file that `survey` wrote."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tvm_neuron.operators.names import READERS, names

PATH = Path(__file__).parent / "operators.json"
FRAMEWORKS = ("ONNX", "RELAX")
"""Those with a front door of their own: `relay.frontend.from_onnx`, and `tvm.compile` of a Relax module."""

_BECOME = dict.fromkeys(READERS, "ONNX") | {"TFLITE": "RELAX"}


@dataclass(frozen=True)
class Outcome:
    """Where sample forms of an operator ran: `where` is neuroncore, cpu, compile time or refused, with the reason.

    `dtypes` are those of the first operand. `condition` is what the forms have in common that is no dtype; `example`
    is the attributes of one of them.
    """

    where: str
    dtypes: tuple[str, ...]
    forms: int
    condition: str = ""
    reason: str = ""
    example: str = ""


@dataclass(frozen=True)
class Operator:
    """An operator and what became of the forms of it that were tried; none, if the samples have none of it."""

    name: str
    outcomes: tuple[Outcome, ...]

    @property
    def is_on_neuroncore(self) -> bool:
        """Whether any form runs there."""
        return any(outcome.where == "neuroncore" for outcome in self.outcomes)


@dataclass(frozen=True)
class Listing:
    """All operators of a framework, the constraints that hold for all, and for which device and options.

    Operators of frameworks that have no outcomes of their own `become` those of another, whose list says where these
    run.
    """

    framework: str
    device: str
    constraints: tuple[str, ...]
    operators: tuple[Operator, ...]
    becomes: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The listing as plain values."""
        return asdict(self)


def listing(framework: str) -> Listing:
    """What is known of a framework's operators.

    Raises OptionError or ModelError: what reads them is not installed.
    """
    if framework in _BECOME:
        operators = tuple(Operator(name, ()) for name in names(framework))
        return Listing(framework, "", (), operators, _BECOME[framework])
    return next(found for found in read(PATH.read_text()) if found.framework == framework)


def read(text: str) -> tuple[Listing, ...]:
    """The inverse of `write`."""
    return tuple(
        Listing(
            raw["framework"],
            raw["device"],
            tuple(raw["constraints"]),
            tuple(
                Operator(name, tuple(Outcome(**{**row, "dtypes": tuple(row["dtypes"])}) for row in rows))
                for name, rows in raw["operators"].items()
            ),
        )
        for raw in json.loads(text)
    )


def write(listings: Iterable[Listing]) -> str:
    """JSON, an operator's outcomes each on a line; what is empty is left out."""
    texts = []
    for found in listings:
        rows = ",\n".join(
            f"  {json.dumps(op.name)}: [{','.join(map(_row, op.outcomes))}\n  ]" for op in found.operators
        )
        head = f'{{"framework": {json.dumps(found.framework)}, "device": {json.dumps(found.device)},\n'
        texts.append(f'{head} "constraints": {json.dumps(found.constraints)},\n "operators": {{\n{rows}\n }}}}')
    return "[\n" + ",\n".join(texts) + "\n]\n"


def _row(outcome: Outcome) -> str:
    return "\n   " + json.dumps({key: value for key, value in asdict(outcome).items() if value})
