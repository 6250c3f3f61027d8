"""chlo.erf_inv, by which normal random numbers are made of uniform ones."""

from typing import Any

import numpy as np

from tvm_neuron.frontend.graph import Graph
from tvm_neuron.frontend.inverse_error import CENTRE, EDGE, SHIFT, TAIL, TAIL_SHIFT
from tvm_neuron.frontend.xla.operators.elementwise import elementwise
from tvm_neuron.frontend.xla.region import Converter


def _erf_inv(graph: Graph, names: list[str], dtype: np.dtype[Any]) -> str:
    """Both polynomials at once: each coefficient is that of the one which counts."""

    def number(value: float) -> str:
        return graph.constant(value, dtype)

    (x,) = names
    product = graph.add("Mul", graph.add("Sub", number(1), x), graph.add("Add", number(1), x))
    w = graph.add("Neg", graph.add("Log", product))
    is_central = graph.add("Less", w, number(EDGE))
    tail = graph.add("Sub", graph.add("Sqrt", graph.add("Max", w, number(EDGE))), number(TAIL_SHIFT))
    place = graph.add("Where", is_central, graph.add("Sub", w, number(SHIFT)), tail)
    found = graph.add("Where", is_central, number(CENTRE[0]), number(TAIL[0]))
    for centre, outer in zip(CENTRE[1:], TAIL[1:], strict=True):
        weight = graph.add("Where", is_central, number(centre), number(outer))
        found = graph.add("Add", graph.add("Mul", found, place), weight)
    return str(graph.add("Mul", found, x))


CONVERTERS: dict[str, Converter] = {"chlo.erf_inv": elementwise(_erf_inv)}
