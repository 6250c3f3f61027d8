"""`analyze`: where the operators of a PyTorch model would run, without compiling it."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import torch

from tvm_neuron import build as compiler
from tvm_neuron.build import BuildOptions
from tvm_neuron.compile_model import import_model
from tvm_neuron.neff import Placement
from tvm_neuron.relay.build_module import wishes


@dataclass(frozen=True)
class Analysis:
    """A row for each operator: its name (that of its module), its type in ONNX, where it would run, and why."""

    rows: tuple[Placement, ...]

    @property
    def on_cpu(self) -> tuple[Placement, ...]:
        """Those that would not run on the NeuronCore, though they run."""
        return tuple(row for row in self.rows if row.where == "cpu")

    def __str__(self) -> str:
        counts = Counter(row.where for row in self.rows)
        lines = [", ".join(f"{count} {where}" for where, count in counts.items())]
        for row in self.rows:
            reason = f": {row.reason}" if row.reason else ""
            lines.append(f"{row.where:12} {row.name} ({row.op}){reason}")
        return "\n".join(lines)


def analyze(
    model: torch.nn.Module, example_inputs: Any = None, target: Any = "neuron", *, options: BuildOptions | None = None
) -> Analysis:
    """Where `trace` would place the operators of `model`; arguments and errors are those of `tvm_neuron.compile`."""
    mod, params, options = import_model(model, example_inputs, options)
    return Analysis(tuple(compiler.placed(mod, params, wishes(target, options)[1]).placements))
