"""A program on several modelled cores: parts that each core runs, and what they exchange between them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tvm

from tvm_neuron.runtime.bucket import Bucket, Tensors
from tvm_neuron.runtime.program import each_core
from tvm_neuron.runtime.tensors import as_numpy
from tvm_neuron.spmd import Cut, Exchange, Join, Plan, Run, cut, exchanged, join

Values = dict[str, list[np.ndarray[Any, Any]]]
"""Of each core, by the tensor's name."""


class SpmdBucket(Bucket):
    """A plan and its parts as one bucket, which takes whole tensors and gives whole ones."""

    def __init__(self, plan: Plan, modules: Sequence[tvm.runtime.Module], device: tvm.runtime.Device) -> None:
        """`modules` are those of the parts, in the plan's order, each as `Bucket` takes it.

        Raises HostError: see `Bucket`.
        """
        self.inputs, self.outputs, self.batch = plan.inputs, plan.outputs, None
        self._plan = plan
        self._parts = [Bucket(module, device) for module in modules]

    def run(self, values: Tensors) -> list[tvm.runtime.Tensor]:
        """The outputs for inputs of the compiled shapes."""
        plan = self._plan
        known: Values = {name: [as_numpy(value)] * plan.cores for name, value in values.items()}
        if plan.core:
            known[plan.core] = [np.array(core, np.uint32) for core in range(plan.cores)]
        for step in plan.steps:
            if isinstance(step, Run):
                self._run_part(step, known)
            elif isinstance(step, Cut):
                known[step.target] = cut(known[step.source][0], step.layout)
            elif isinstance(step, Join):
                known[step.target] = [join(known[step.source], step.layout)] * plan.cores
            elif isinstance(step, Exchange):
                known[step.target] = exchanged(step, known[step.source])
        return [tvm.runtime.tensor(known[name][0]) for name in plan.results]

    def _run_part(self, step: Run, known: Values) -> None:
        part, found = self._parts[step.part], []
        for core in each_core(1 if step.is_whole else self._plan.cores):
            given = {name: tvm.runtime.tensor(known[name][core]) for name in step.inputs}
            found.append([as_numpy(result) for result in part.run(given)])
        alike = self._plan.cores // len(found)
        for name, results in zip(step.outputs, zip(*found, strict=True), strict=True):
            known[name] = [*results] * alike
