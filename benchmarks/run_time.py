"""One run of ResNet-50 on the hardware model, beside onnxruntime in float32 on two threads.

`python -m benchmarks.run_time`
"""

import statistics

import numpy as np
import onnxruntime
import tvm

import tvm_neuron
from benchmarks.row import Row, seconds, side_by_side
from tvm_neuron import relay
from tvm_neuron.frontend.sample_models import light_network

BAR_RATIO = 20.0
PEER = "onnxruntime fp32, 2 threads"


def measure(repeats: int = 9) -> list[Row]:
    """The data of a run (loop nests at once), its clock, and the first run, which also plans the nests.

    Of three rounds, that in which the peer was quickest counts: the quietest, and the least flattering.
    """
    model = light_network("resnet50")
    mod, params = relay.frontend.from_onnx(model)
    library = relay.build(mod, target="neuron", params=params)
    x = np.random.default_rng(0).standard_normal((1, 3, 224, 224), dtype=np.float32)
    executor = library["default"](tvm.cpu())
    executor.set_input(0, x)
    session = make_session(model.SerializeToString())
    feed = {session.get_inputs()[0].name: x}
    first = seconds(executor.run)
    session.run(None, feed)
    calls = ((executor.run, 1), (lambda: session.run(None, feed), 5), (lambda: tvm_neuron.report(library), 1))
    rounds = [side_by_side(calls, repeats) for _ in range(3)]
    ours, theirs, clock = min(rounds, key=lambda samples: statistics.median(samples[1]))
    return [
        Row(
            what="ResNet-50: one run on the model", unit="ms", samples=in_ms(ours),
            peer=PEER, peer_samples=in_ms(theirs), bar=BAR_RATIO, is_bar_a_ratio=True,
        ),
        Row(what="ResNet-50: the first run", unit="ms", samples=in_ms((first,))),
        Row(
            what="ResNet-50: the clock and the report", unit="ms", samples=in_ms(clock),
        ),
    ]  # fmt: skip


def make_session(model: bytes) -> onnxruntime.InferenceSession:
    """onnxruntime on two threads."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    return onnxruntime.InferenceSession(model, options)


def in_ms(samples: tuple[float, ...]) -> tuple[float, ...]:
    """Seconds as milliseconds."""
    return tuple(sample * 1e3 for sample in samples)


if __name__ == "__main__":
    from benchmarks.table import show

    show(measure())
