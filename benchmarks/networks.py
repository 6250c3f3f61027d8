"""The nine light networks on two modelled chips: latency, roofline, utilisation, error.

`python -m benchmarks.networks`
"""

import time
from collections.abc import Iterator, Sequence

import numpy as np
import onnxruntime
import tvm

import tvm_neuron
from benchmarks.modelled import Modelled
from benchmarks.table import show_modelled
from tvm_neuron import relay
from tvm_neuron.frontend.sample_models import LIGHT_NETWORKS, light_network

CHIPS = ("inf1", "inf2")


def measure(names: Sequence[str] = LIGHT_NETWORKS, chips: Sequence[str] = CHIPS) -> Iterator[Modelled]:
    """Each network at batch 1 on each chip."""
    for name in names:
        model = light_network(name)
        x = np.random.default_rng(0).standard_normal((1, 3, 224, 224), dtype=np.float32)
        session = onnxruntime.InferenceSession(model.SerializeToString())
        expected = session.run(None, {session.get_inputs()[0].name: x})[0]
        for chip in chips:
            begin = time.perf_counter()
            mod, params = relay.frontend.from_onnx(model)
            library = relay.build(mod, target=f"neuron/{chip}", params=params)
            taken = time.perf_counter() - begin
            executor = library["default"](tvm.cpu())
            executor.set_input(0, x)
            executor.run()
            error = np.linalg.norm(executor.get_output(0).numpy() - expected) / np.linalg.norm(expected)
            report = tvm_neuron.report(library)
            yield Modelled(
                name, chip, report.latency_us, report.roofline_us, report.pe_utilisation, report.dram_bytes / 1e6,
                len(report.placed("cpu")), taken, float(error),
            )  # fmt: skip


if __name__ == "__main__":
    show_modelled(measure())
