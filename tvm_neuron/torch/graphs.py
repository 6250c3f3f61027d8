"""What `torch.compile` gave to the backend so far: a report of each graph, and what of it stayed in torch."""

from dataclasses import dataclass

from tvm_neuron.profile.report import Report


@dataclass(frozen=True)
class GraphReport:
    """A graph between two graph breaks, for one set of shapes.

    `reports` has one for each part that was compiled; `in_torch` names what was not, with the reason of each.
    """

    shapes: tuple[tuple[int, ...], ...]
    reports: tuple[Report, ...]
    in_torch: dict[str, str]

    def __str__(self) -> str:
        lines = [f"graph for {', '.join(str(list(shape)) for shape in self.shapes) or 'no tensors'}"]
        lines += [f"  compiled: {report.headline()}" for report in self.reports]
        lines += [f"  in torch: {name}: {reason}" for name, reason in self.in_torch.items()]
        return "\n".join(lines)


_found: list[GraphReport] = []


def graphs() -> tuple[GraphReport, ...]:
    """Those that were compiled in this process, in their order."""
    return tuple(_found)


def note(report: GraphReport) -> None:
    """One more was compiled."""
    _found.append(report)
