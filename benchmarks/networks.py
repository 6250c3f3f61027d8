"""The nine light networks on two modelled chips: latency beside the roofline, and the error against onnxruntime."""

import numpy as np
import onnx
import onnxruntime
import tvm

import tvm_neuron
from benchmarks.row import Row
from tvm_neuron import relay
from tvm_neuron.frontend.sample_models import light_network

CHIPS = ("inf1", "inf2")


def measure(network: str) -> list[Row]:
    """One network at batch 1 on each chip, and the relative L2 error of its output, which is the same on both."""
    model = light_network(network)
    rows = []
    for chip in CHIPS:
        mod, params = relay.frontend.from_onnx(model)
        library = relay.build(mod, target=f"neuron/{chip}", params=params)
        report = tvm_neuron.report(library)
        without = f", without {len(found)} operators on the CPU" if (found := report.placed("cpu")) else ""
        rows.append(
            Row(
                what=f"{network} on {chip}{without}", unit="us", samples=(report.latency_us,), peer="roofline",
                peer_samples=(report.roofline_us,),
            )
        )  # fmt: skip
    error = 100 * _error(library, model)
    return [*rows, Row(what=f"{network}: error against onnxruntime fp32", unit="%", samples=(error,))]


def _error(library: relay.ExecutorFactory, model: onnx.ModelProto) -> float:
    x = np.random.default_rng(0).standard_normal((1, 3, 224, 224), dtype=np.float32)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    expected = session.run(None, {session.get_inputs()[0].name: x})[0]
    executor = library["default"](tvm.cpu())
    executor.set_input(0, x)
    executor.run()
    return float(np.linalg.norm(executor.get_output(0).numpy() - expected) / np.linalg.norm(expected))
