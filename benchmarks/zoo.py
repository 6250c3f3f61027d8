"""Whole networks on two modelled chips, as a Markdown table: `python -m benchmarks.zoo [NAME...] [--publish]`.

The transformers need the extra `torch`. `--publish` writes the table into docs/networks.md.
"""

import argparse
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

from benchmarks.publish import replace_table
from tests.models.agreement import Agreement, Case, random_inputs
from tests.models.zoo import NETWORKS
from tests.models.zoo.transformers import TRANSFORMERS

CHIPS = ("inf1", "inf2")
HEAD = (
    "network",
    "chip",
    "NeuronCore",
    "CPU",
    "error",
    "bound",
    "compiled s",
    "cycles",
    "latency us",
    "PE",
    "on the CPU",
)
_LEFT = 2  # columns of text before those of numbers


def cases() -> dict[str, Callable[[], Case]]:
    """How each network is made, by the name that selects it."""
    exporters = {"TorchScript": False, "dynamo": True}
    exported = {
        f"{name}-{exporter}": partial(_exported, name, dynamo)
        for name in TRANSFORMERS
        for exporter, dynamo in exporters.items()
    }
    return {name: partial(_written, name) for name in NETWORKS} | exported


def measure(names: list[str]) -> Iterator[Agreement]:
    """Each network on each chip."""
    known = cases()
    for name in names or known:
        case = known[name]()
        for chip in CHIPS:
            yield case.run(chip)


def row(found: Agreement) -> tuple[str, ...]:
    """What the table says of it; error and bound are those of the output nearest to its bound."""
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(Counter(found.on_cpu).items()))
    return (
        found.network, found.chip, str(found.on_core), str(len(found.on_cpu)), f"{found.errors[found.worst]:.2%}",
        f"{found.bounds[found.worst]:.2%}", f"{found.compile_seconds:.1f}", f"{found.cycles:,}",
        f"{found.latency_us:,.0f}", f"{found.pe_utilisation:.1%}", kinds,
    )  # fmt: skip


def markdown(rows: list[tuple[str, ...]]) -> str:
    """A table, its columns aligned."""
    rule = ["---" if i < _LEFT or i == len(HEAD) - 1 else "---:" for i in range(len(HEAD))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (HEAD, rule, *rows))


def main() -> None:
    """Measures, prints each row as it comes, publishes if asked to."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.zoo", description="Measure what docs/networks.md says.")
    parser.add_argument("names", nargs="*", choices=[[], *cases()], metavar="NAME", help=", ".join(cases()))
    parser.add_argument("--publish", action="store_true", help="write the table into docs/networks.md")
    options = parser.parse_args()
    rows = []
    for found in measure(options.names):
        rows.append(row(found))
        print(" | ".join(rows[-1]), flush=True)
    if options.publish:
        replace_table("docs/networks.md", "networks", markdown(rows))


def _written(name: str) -> Case:
    model = NETWORKS[name]()
    return Case(model, random_inputs(model))


def _exported(name: str, dynamo: bool) -> Case:
    return Case(*TRANSFORMERS[name](dynamo))


if __name__ == "__main__":
    main()
