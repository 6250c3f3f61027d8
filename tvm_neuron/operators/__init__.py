"""Which operators run where and under which conditions: found by asking the partition about sample models."""

from tvm_neuron.operators.listing import FRAMEWORKS, Listing, Operator, Outcome, listing

__all__ = ["FRAMEWORKS", "Listing", "Operator", "Outcome", "listing"]
