"""NEFF: the container that holds all the runtime and the hardware model see of a compiled subgraph."""

from tvm_neuron.neff.container import MAGIC, MAJOR, MINOR, Header, read_banner, read_header, version_problem
from tvm_neuron.neff.describe import describe
from tvm_neuron.neff.inputs import check_inputs
from tvm_neuron.neff.neff import Neff, Placement, TensorInfo
from tvm_neuron.neff.pipeline import Pipeline, core_files, core_names, pipeline_pieces, read_pipeline, verified
from tvm_neuron.neff.reader import read
from tvm_neuron.neff.store import load, read_file, save, write_aside
from tvm_neuron.neff.writer import write

__all__ = [
    "MAGIC",
    "MAJOR",
    "MINOR",
    "Header",
    "Neff",
    "Pipeline",
    "Placement",
    "TensorInfo",
    "check_inputs",
    "core_files",
    "core_names",
    "describe",
    "load",
    "pipeline_pieces",
    "read",
    "read_banner",
    "read_file",
    "read_header",
    "read_pipeline",
    "save",
    "verified",
    "version_problem",
    "write",
    "write_aside",
]
