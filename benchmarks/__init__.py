"""Every number that is published has its script here; `python -m benchmarks` runs them and prints one table."""

import warnings

from tvm_neuron.errors import DefectWarning, PlacementWarning

warnings.filterwarnings("error", category=DefectWarning)  # no number is of a model that a defect put on the CPU
warnings.filterwarnings("ignore", category=PlacementWarning)  # the tables say where everything runs
