"""What stays on the CPU: typical operators, compiled for `neuron` with all of them kept there, beside onnxruntime.

`python -m benchmarks.cpu_parts [NAME ...]`; onnxruntime has two threads, and so has what is measured on two cores.
"""

import sys

import numpy as np
import tvm

from benchmarks.leftovers import LEFTOVERS, Leftover
from benchmarks.row import Row, side_by_side
from benchmarks.run_time import PEER, in_ms, make_session
from tvm_neuron import BuildOptions, relay, report

BAR_RATIO = 3.0
_CALLS = 10


def measure(repeats: int = 9, names: tuple[str, ...] = ()) -> list[Row]:
    """A row for each leftover; each turn calls both several times, since many take less than a millisecond."""
    return [_measure(make(), repeats) for make in LEFTOVERS if not names or make.__name__ in names]


def _measure(leftover: Leftover, repeats: int) -> Row:
    mod, params = relay.frontend.from_onnx(leftover.model)
    library = relay.build(mod, target="neuron", params=params, options=BuildOptions(on_cpu=("*",)))
    if stray := report(library).placed("neuroncore"):
        raise ValueError(f"{leftover.what}: {stray[0].name} is not on the CPU")
    executor = library["default"](tvm.cpu())
    executor.set_inputs(leftover.inputs)
    session = make_session(leftover.model.SerializeToString())
    executor.run()
    for index, wanted in enumerate(session.run(None, leftover.inputs)):
        np.testing.assert_allclose(executor.get_output(index).numpy(), wanted, 1e-4, 1e-4, err_msg=leftover.what)
    calls = ((executor.run, _CALLS), (lambda: session.run(None, leftover.inputs), _CALLS))
    ours, theirs = side_by_side(calls, repeats)
    return Row(
        what=leftover.what, unit="ms", samples=in_ms(ours), peer=PEER, peer_samples=in_ms(theirs),
        bar=BAR_RATIO, is_bar_a_ratio=True,
    )  # fmt: skip


if __name__ == "__main__":
    from benchmarks.table import show

    show(measure(names=tuple(sys.argv[1:])))
