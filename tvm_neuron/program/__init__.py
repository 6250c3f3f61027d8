"""The program of one NeuronCore: loops, tensors, text form, engine streams, and the checks that it is sound."""

from tvm_neuron.program.form import check_form
from tvm_neuron.program.program import DramTensor, Loop, Node, Origin, Program, unroll, walk
from tvm_neuron.program.streams import join, split
from tvm_neuron.program.text import parse_program, print_program

__all__ = [
    "DramTensor",
    "Loop",
    "Node",
    "Origin",
    "Program",
    "check_form",
    "join",
    "parse_program",
    "print_program",
    "split",
    "unroll",
    "walk",
]
