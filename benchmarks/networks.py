"""The nine light networks on two modelled chips: latency beside the roofline, and the error against onnxruntime."""

import numpy as np
import onnxruntime
import tvm

import tvm_neuron
from benchmarks.row import Row
from tvm_neuron import relay
from tvm_neuron.frontend.sample_models import light_network

CHIPS = ("inf1", "inf2")


def measure(network: str) -> list[Row]:
    """One network at batch 1 on each chip; its error is the relative L2 error of the output."""
    model = light_network(network)
    x = np.random.default_rng(0).standard_normal((1, 3, 224, 224), dtype=np.float32)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    expected = session.run(None, {session.get_inputs()[0].name: x})[0]
    rows = []
    for chip in CHIPS:
        mod, params = relay.frontend.from_onnx(model)
        library = relay.build(mod, target=f"neuron/{chip}", params=params)
        executor = library["default"](tvm.cpu())
        executor.set_input(0, x)
        executor.run()
        error = float(np.linalg.norm(executor.get_output(0).numpy() - expected) / np.linalg.norm(expected))
        report = tvm_neuron.report(library)
        without = f", without {len(found)} operators on the CPU" if (found := report.placed("cpu")) else ""
        latency, roofline = (report.latency_us,), (report.roofline_us,)
        rows += [
            Row(
                what=f"{network} on {chip}{without}", unit="us", samples=latency, peer="roofline", peer_samples=roofline
            ),
            Row(what=f"{network} on {chip}: error against onnxruntime fp32", unit="%", samples=(100 * error,)),
        ]
    return rows
