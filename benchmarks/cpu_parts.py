"""What stays on the CPU: typical operators, compiled for `neuron` with all of them kept there, beside onnxruntime.

Both have as many threads as the process may use cores, at most two.
"""

import statistics

import numpy as np
import tvm

from benchmarks.leftovers import LEFTOVERS, Leftover
from benchmarks.row import Bar, Row, side_by_side
from benchmarks.run_time import PEER, make_session
from tvm_neuron import BuildOptions, relay, report

OF_PEER = Bar(3, is_ratio=True)
_ROUNDS, _REPEATS, _CALLS = 3, 9, 10
_REST_SECONDS = 0.06
"""onnxruntime's second thread looks for work for 33 ms after a call, on the core that ours needs."""


def measure() -> list[Row]:
    """A row for each leftover, and one more with all of this machine's instructions for those that compute most."""
    return [
        _measure(leftover, host_cpu)
        for leftover in (make() for make in LEFTOVERS)
        for host_cpu in (("baseline", "native") if leftover.computes else ("baseline",))
    ]


def _measure(leftover: Leftover, host_cpu: str) -> Row:
    """Each turn calls both several times, since many take less than a millisecond.

    Of three rounds, that in which the peer was quickest counts: the quietest, and the least flattering.
    """
    mod, params = relay.frontend.from_onnx(leftover.model)
    library = relay.build(mod, target="neuron", params=params, options=BuildOptions(on_cpu=("*",), host_cpu=host_cpu))
    if stray := report(library).placed("neuroncore"):
        raise ValueError(f"{leftover.what}: {stray[0].name} is not on the CPU")
    executor = library["default"](tvm.cpu())
    executor.set_inputs(leftover.inputs)
    session = make_session(leftover.model.SerializeToString())
    executor.run()
    for index, wanted in enumerate(session.run(None, leftover.inputs)):
        np.testing.assert_allclose(executor.get_output(index).numpy(), wanted, 1e-4, 1e-4, err_msg=leftover.what)
    calls = ((executor.run, _CALLS), (lambda: session.run(None, leftover.inputs), _CALLS))
    rounds = [side_by_side(calls, _REPEATS, _REST_SECONDS) for _ in range(_ROUNDS)]
    ours, theirs = min(rounds, key=lambda samples: statistics.median(samples[1]))
    return Row(
        what=leftover.what if host_cpu == "baseline" else f"{leftover.what}, {host_cpu}", unit="us",
        samples=_in_us(ours), peer=PEER, peer_samples=_in_us(theirs), bar=OF_PEER,
    )  # fmt: skip


def _in_us(samples: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(sample * 1e6 for sample in samples)
