"""Run an exported library once: `python demo/run_library.py LIBRARY.so X.npy Y.npy`. No compiler is imported."""

import sys

import numpy as np
import tvm

import tvm_neuron.runtime  # noqa: F401  TVM can load the Neuron parts of a library once this is imported


def main(library_file: str, input_file: str, output_file: str) -> None:
    """Load the library, give it its one input, run it on the hardware model and keep its first output."""
    library = tvm.runtime.load_module(library_file)
    executor = library["default"](tvm.cpu())
    executor.set_input(0, np.load(input_file))
    executor.run()
    np.save(output_file, executor.get_output(0).numpy())


if __name__ == "__main__":
    main(*sys.argv[1:])
