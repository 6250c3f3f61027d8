"""run: a package on given or made-up inputs, and the times it takes."""

import io
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import tvm
from numpy.typing import NDArray
from tvm.runtime.module import BenchmarkResult

from tvm_neuron.errors import OptionError
from tvm_neuron.relay.graph_executor import GraphModule
from tvm_neuron.runtime import report
from tvm_neuron.tvmc.package import TVMCPackage

FILL_MODES = ("random", "zeros", "ones")
DEVICES = ("neuron", "cpu")


class TVMCResult:
    """`outputs` by name, `output_0` and on; `times` on this machine if they were asked for; the modelled latency."""

    def __init__(
        self, outputs: dict[str, NDArray[Any]], times: BenchmarkResult | None, modelled_us: float, profile: str = ""
    ) -> None:
        self.outputs = outputs
        self.times = times
        self.modelled_us = modelled_us
        self.profile = profile

    def format_times(self) -> str:
        """The times as a table."""
        modelled = f"modelled latency of the NeuronCores: {self.modelled_us:,.1f} us"
        return modelled if self.times is None else f"{modelled}\nof the model on this machine:\n{self.times}"

    def get_output(self, name: str) -> NDArray[Any]:
        """One output."""
        return self.outputs[name]

    def save(self, output_path: str | os.PathLike[str]) -> None:
        """Writes the outputs as .npz."""
        np.savez(output_path, allow_pickle=False, **self.outputs)

    def __str__(self) -> str:
        return f"{self.format_times()}\n\nOutput Names:\n {list(self.outputs)}"


def run_module(
    tvmc_package: TVMCPackage, device: str = "neuron", hostname: str | None = None, port: int | str = 9090,
    rpc_key: str | None = None, inputs: Mapping[str, NDArray[Any]] | None = None, fill_mode: str = "random",
    benchmark: bool = False, repeat: int = 10, number: int = 10, profile: bool = False, end_to_end: bool = False,
    options: Mapping[str, Any] | None = None,
) -> TVMCResult:  # fmt: skip
    """Runs the model on `inputs`, or on what `fill_mode` makes up for those that are not given.

    `profile` adds a table of the modelled time by layer and engine.

    Raises OptionError: unknown device or fill mode, another machine; InputError: an input of another name, shape or
    dtype.
    """
    del options
    if device not in DEVICES:
        raise OptionError(f"tvmc.run: device is '{device}'; there are {', '.join(DEVICES)}, which are alike")
    if fill_mode not in FILL_MODES:
        raise OptionError(f"tvmc.run: fill_mode is '{fill_mode}'; there are {', '.join(FILL_MODES)}")
    if hostname is not None:
        raise OptionError(f"tvmc.run: hostname is '{hostname}'; packages run on this machine alone")
    del port, rpc_key
    library = tvmc_package.library()
    module = GraphModule(library["default"](tvm.cpu()))
    given: dict[str, Any] = dict(inputs or {})
    for spec in module.module.inputs:
        module.set_input(spec.name, given.pop(spec.name) if spec.name in given else _filled(spec, fill_mode))
    module.set_input(**given)  # refuses what is left
    module.run()
    outputs = {f"output_{index}": module.get_output(index).numpy() for index in range(module.get_num_outputs())}
    times = None
    if benchmark:
        times = module.benchmark(tvm.cpu(), repeat=repeat, number=number, end_to_end=end_to_end)
    found = report(library)
    return TVMCResult(outputs, times, found.latency_us, _profile(found) if profile else "")


def _profile(found: Any) -> str:
    from rich.console import Console

    from tvm_neuron.profile.tables import render

    text = io.StringIO()
    Console(file=text, width=100).print(render(found, 20))
    return text.getvalue()


def _filled(spec: Any, fill_mode: str) -> NDArray[Any]:
    shape = [max(int(dim), 1) for dim in spec.shape]
    if fill_mode != "random":
        return np.full(shape, float(fill_mode == "ones")).astype(spec.dtype)
    rng = np.random.default_rng(0)
    if np.dtype(spec.dtype).kind in "iub":
        return rng.integers(0, 2, shape).astype(spec.dtype)  # so that indices are valid
    return rng.uniform(-1, 1, shape).astype(spec.dtype)
