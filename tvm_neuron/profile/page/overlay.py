"""Overlay: what others know of a model's operators, as columns and sections of the page of its report."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tvm_neuron.profile.page.tables import Cell


@dataclass(frozen=True)
class Section:
    """A plot of Bokeh's, if there is one, and what stands below it, in HTML."""

    title: str
    plot: Any
    body: str


@dataclass(frozen=True)
class Overlay:
    """`columns` has cells by heading and operator; `sections` come after the findings."""

    sections: Sequence[Section] = ()
    columns: Mapping[str, Mapping[str, Cell]] = field(default_factory=dict)
