"""Random networks in every precision, also with little SBUF and a mode for each operator, against onnxruntime."""

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm

import tvm_neuron
from tests.codegen.random_networks import RandomNetwork
from tests.onnx_models import reference
from tvm_neuron import BuildOptions, neff, relay, runtime
from tvm_neuron.hw import load_device
from tvm_neuron.hw.load import device_to_dict
from tvm_neuron.isa.dtypes import DTYPES
from tvm_neuron.sim import Machine

# Rounding once is 2**-9, 2**-12 or 2**-25; six operators, of which some cancel, leave room for 16 of those. In
# float32 the functions of the engines count as well, some units of the last place each: room for 64.
BOUNDS = {
    "all": 2.0**-5, "matmult": 2.0**-5, "matmult-fp16": 2.0**-8, "all-fp16": 2.0**-8, "none": 2.0**-19,
}  # fmt: skip


def check(network: RandomNetwork, target: Any, options: BuildOptions, bound: float) -> None:
    model, inputs = network.model(), network.inputs()
    mod, params = relay.frontend.from_onnx(model)
    library = relay.build(mod, target=target, params=params, options=options)
    assert not tvm_neuron.report(library).placed("cpu")
    executor = relay.graph_executor.GraphModule(library["default"](tvm_neuron.device()))
    executor.run(**inputs)
    actual = executor.get_output(0).numpy()
    (wanted,) = reference(model, inputs)
    assert np.linalg.norm(actual - wanted) <= bound * np.linalg.norm(wanted)
    (data,) = runtime.neffs(library).values()
    compiled = neff.read(data)
    machine = Machine(compiled.program, compiled.device, compiled.weights)
    dtypes = {tensor.name: DTYPES[tensor.dtype] for tensor in compiled.program.tensors}
    (strict,) = machine.run({"x": inputs["x"].astype(dtypes["x"])}, "strict", network.seed).values()
    assert strict.tobytes() == actual.tobytes()


def little_memory(folder: Path) -> tvm.target.Target:
    """An inf2 of which most tensors lie in device memory."""
    raw = device_to_dict(load_device("inf2"))
    raw |= {"name": "little", "sbuf_bytes_per_partition": {"value": 48 * 1024, "source": "this test"}}
    path = folder / "little.json"
    path.write_text(json.dumps(raw))
    return tvm.target.Target({"tag": "neuron", "device": str(path)})


SEEDS = [*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 40))]
MODES = ("matmult", "matmult-fp16", "all-fp16", "none")
IN_TURNS = [pytest.param(seed, mode, marks=pytest.mark.slow) for seed in range(3, 40) for mode in MODES[seed % 2 :: 2]]
"""Two modes a network; `test_a_mode_for_each_operator` has the others among its operators'."""


@pytest.mark.parametrize(("seed", "mode"), [*((seed, mode) for seed in range(3) for mode in MODES), *IN_TURNS])
def test_modes(seed: int, mode: str) -> None:
    check(RandomNetwork(seed, operators=6), "neuron/inf2", BuildOptions(fp32_cast=mode), BOUNDS[mode])


@pytest.mark.parametrize("seed", SEEDS)
def test_float32_through_device_memory(seed: int, tmp_path: Path) -> None:
    check(RandomNetwork(seed, operators=6), little_memory(tmp_path), BuildOptions(fp32_cast="none"), BOUNDS["none"])


@pytest.mark.parametrize("seed", SEEDS)
def test_a_mode_for_each_operator(seed: int) -> None:
    network, draw = RandomNetwork(seed, operators=6), random.Random(seed)
    modes = {node.name: draw.choice(list(BOUNDS)) for node in network.model().graph.node}
    check(network, "neuron/inf2", BuildOptions(fp32_cast_of=modes), BOUNDS["all"])
