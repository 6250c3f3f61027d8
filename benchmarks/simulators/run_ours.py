"""This compiler and its model over an ONNX file: `run_ours.py REQUEST.json FOLDER`; prints the cycles.

With `outputs` in the request the model also computes them, of random inputs.
"""

import json
import sys
from pathlib import Path

import numpy as np
import onnx
import tvm

from tvm_neuron import neff, relay, runtime, sim


def main() -> None:
    """Cycles of the matrix engine, of which the other engines' are multiples or parts."""
    request = json.loads(Path(sys.argv[1]).read_text())
    mod, params = relay.frontend.from_onnx(onnx.load(request["onnx"]))
    library = relay.build(mod, target="neuron/" + request["chip"], params=params)
    if request["outputs"]:
        executor = library["default"](tvm.cpu())
        random = np.random.default_rng(0)
        executor.set_inputs({x.name: random.standard_normal(x.shape).astype(x.dtype) for x in executor.inputs})
        executor.run()
        executor.get_output(0).numpy()
    (subgraph,) = map(neff.read, runtime.neffs(library).values())
    print(json.dumps({"cycles": sim.time_program(subgraph.program, subgraph.device).cycles}))


if __name__ == "__main__":
    main()
