"""Comparison: what was found out about a model's numbers, as a value: rows, sentences, text in JSON, a page."""

import json
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from tvm_neuron.errors import from_extra
from tvm_neuron.numerics.rows import Finding, Nonfinite, OperatorError, Output, WhatIf
from tvm_neuron.profile import Report


@dataclass(frozen=True)
class Comparison:
    """A model on the core beside float32, on the inputs that `inputs` names. `operators` are in the model's order."""

    inputs: str
    outputs: tuple[Output, ...]
    operators: tuple[OperatorError, ...]
    nonfinite: tuple[Nonfinite, ...]
    what_if: tuple[WhatIf, ...]
    findings: tuple[Finding, ...]
    report: Report = field(repr=False)

    @property
    def is_explained(self) -> bool:
        """Whether roundings explain all errors."""
        return not any(finding.is_defect for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """As dictionaries, lists and numbers."""
        found = asdict(replace(self, report=None))  # type: ignore[arg-type]
        del found["report"]
        numbers = {"latency_us": self.report.latency_us, "precision": dict(self.report.precision)}
        return {"device": self.report.device, "is_explained": self.is_explained} | numbers | found

    def to_json(self) -> str:
        """As text in JSON."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    def to_html(self, title: str = "") -> str:
        """The page of the report, with what was found out: sentences, a plot, and columns in its table of operators.

        Raises:
            OptionError: the extra `html` is not installed.
        """
        with from_extra("html", "a comparison in HTML"):
            from tvm_neuron.numerics.page import overlay
        return self.report.to_html(title, overlay(self.inputs, self.findings, self.operators, self.what_if))
