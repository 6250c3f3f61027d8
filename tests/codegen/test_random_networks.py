"""Random networks, whole, against onnxruntime: on both chips, in every mode of the model, and with little SBUF."""

import json
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import tvm

import tvm_neuron
from tests.codegen.random_networks import RandomNetwork
from tests.models.rounding import emulate_bfloat16
from tests.onnx_models import Arrays, reference
from tvm_neuron import neff, relay, runtime
from tvm_neuron.hw import load_device
from tvm_neuron.hw.load import device_to_dict
from tvm_neuron.isa.dtypes import DTYPES
from tvm_neuron.sim import Machine

QUICK = range(20)
# What went wrong once: slices at odd channels and reductions of them, windows of one element, average pools padded in
# one direction, constants beside odd rows of weights, a tensor twice in a concatenation, one read by its other part.
ONCE_WRONG = [
    (6, 5), (8, 5), (42, 5), (114, 7), (215, 7), (355, 9), (369, 9), (437, 9), (501, 10), (530, 10), (587, 10),
    (137, 9),
]  # fmt: skip


def check(network: RandomNetwork, target: object) -> None:
    model, inputs = network.model(), network.inputs()
    mod, params = relay.frontend.from_onnx(model)
    library = relay.build(mod, target=target, params=params)
    placement = tvm_neuron.report(library).placement
    assert {row.where for row in placement} <= {"neuroncore", "compile time"}, placement
    executor = relay.graph_executor.GraphModule(library["default"](tvm.device("neuron")))
    executor.run(**inputs)
    actual = executor.get_output(0).numpy()
    check_numbers(network, inputs, actual)
    (data,) = runtime.neffs(library).values()
    compiled = neff.read(data)
    machine = Machine(compiled.program, compiled.device, compiled.weights)
    dtypes = {tensor.name: DTYPES[tensor.dtype] for tensor in compiled.program.tensors}
    for mode in ("step", "strict"):
        (other,) = machine.run({"x": inputs["x"].astype(dtypes["x"])}, mode, network.seed).values()
        assert other.tobytes() == actual.tobytes(), mode


def check_numbers(network: RandomNetwork, inputs: Arrays, actual: np.ndarray) -> None:
    """Twice the error that onnxruntime makes when it rounds every tensor to bfloat16, as in tests/models/references."""
    (wanted,) = reference(network.model(), inputs)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(emulate_bfloat16(network.model()).SerializeToString(), options)
    (rounded,) = session.run(None, inputs)
    bound = 2 * np.linalg.norm(rounded - wanted) + 2e-3 * np.linalg.norm(wanted)
    assert np.linalg.norm(actual - wanted) <= bound


@pytest.mark.parametrize("seed", QUICK)
def test_small(seed: int) -> None:
    check(RandomNetwork(seed, operators=5), "neuron/inf1")


@pytest.mark.parametrize(("seed", "operators"), ONCE_WRONG)
def test_once_wrong(seed: int, operators: int) -> None:
    check(RandomNetwork(seed, operators), "neuron/inf2")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 160))
def test_larger(seed: int) -> None:
    check(RandomNetwork(seed, operators=9), f"neuron/inf{1 + seed % 2}")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200, 215))
def test_little_memory(seed: int, tmp_path: Path) -> None:
    check_in_little_memory(seed, tmp_path)


@pytest.mark.parametrize("seed", [278, pytest.param(410, marks=pytest.mark.slow)])
def test_moves_that_permute_partitions_do_not_run_in_tiles(seed: int, tmp_path: Path) -> None:
    """Their source was a tile in SBUF then, from which DMA can't permute; the whole build failed on it."""
    check_in_little_memory(seed, tmp_path)


@pytest.mark.parametrize("seed", [pytest.param(203, marks=pytest.mark.slow), 267])
def test_turns_that_read_what_was_made_before_them(seed: int, tmp_path: Path) -> None:
    """Images in turns took it for one of their own, which nothing had written."""
    check_in_little_memory(seed, tmp_path)


def check_in_little_memory(seed: int, tmp_path: Path) -> None:
    raw = device_to_dict(load_device("inf1"))
    raw |= {"name": "little", "sbuf_bytes_per_partition": {"value": 40 * 1024, "source": "this test"}}
    path = tmp_path / "little.json"
    path.write_text(json.dumps(raw))
    network = RandomNetwork(seed, operators=7, largest=60)
    check(network, tvm.target.Target({"tag": "neuron", "device": str(path)}))
