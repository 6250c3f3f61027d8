"""Sweeps: a product of choices of chip, batch and options, compiled and timed on Ray; a DataFrame out.

`run` is the way in from Python, `neuron-cc sweep` from a shell.
"""

from tvm_neuron.sweep.run import run

__all__ = ["run"]
