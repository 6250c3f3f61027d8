"""Kernels in the public kernel interface; the import gives the names under which they import it."""

import tvm_neuron.nki  # noqa: F401
