"""On a device with less SBUF kernels run in tiles, tensors go to DRAM instead of failing; the numbers stay the same."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm

import tvm_neuron
from tests.onnx_models import reference
from tests.stages.networks import compile_model, residual_network, run
from tvm_neuron import relay, runtime
from tvm_neuron.hw import load_device
from tvm_neuron.hw.load import device_to_dict

KIB = 1024
# Far apart: with a little less memory kernels run in other tiles, which may leave a little less in DRAM.
SBUF_KIB = (28, 20, 12)
# Four convolutions on operands of bfloat16, each half a unit of 2**-8 off: 2**-9 * sqrt(2 * 4), and twice that.
TOLERANCE = 2 * 2.0**-9 * np.sqrt(8)


def shrunk(folder: Path, chip: str, sbuf_kib: int) -> dict[str, str]:
    """A target whose chip has `sbuf_kib` KiB of SBUF in each partition."""
    raw: dict[str, Any] = device_to_dict(load_device(chip))
    raw |= {"name": f"{chip}-{sbuf_kib}", "sbuf_bytes_per_partition": {"value": sbuf_kib * KIB, "source": "this test"}}
    path = folder / f"{raw['name']}.json"
    path.write_text(json.dumps(raw))
    return {"tag": "neuron", "device": str(path)}


@pytest.mark.slow
@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("chip", ["inf1", "inf2"])
def test_numbers_stay(chip: str, batch: int, tmp_path: Path) -> None:
    model = residual_network(batch)
    inputs = {"x": np.random.default_rng(batch).standard_normal((batch, 3, 48, 48)).astype(np.float32)}
    (wanted,) = reference(model, inputs)
    roomy = compile_model(model, f"neuron/{chip}")
    spills = [roomy.memory["spill"]]
    for sbuf_kib in SBUF_KIB:
        tight = compile_model(model, shrunk(tmp_path, chip, sbuf_kib))
        assert tight.device.sbuf_bytes_per_partition == sbuf_kib * KIB
        assert tight.memory["sbuf_peak"] <= sbuf_kib * KIB * tight.device.partitions
        for mode in ("nest", "strict"):
            actual = run(tight, inputs, mode)["y"]
            assert np.linalg.norm(actual - wanted) / np.linalg.norm(wanted) < TOLERANCE
        spills.append(tight.memory["spill"])
    assert spills == sorted(spills)


def test_a_memory_too_small_for_anything_leaves_all_to_the_cpu_and_says_so(tmp_path: Path) -> None:
    mod, params = relay.frontend.from_onnx(residual_network())
    library = relay.build(mod, target=tvm.target.Target(shrunk(tmp_path, "inf1", 8)), params=params)
    assert not runtime.neffs(library)
    reasons = [row.reason for row in tvm_neuron.report(library).placed("cpu")]
    assert reasons
    assert all("bytes of an SBUF partition; inf1-8 has 3276 for them" in reason for reason in reasons)
