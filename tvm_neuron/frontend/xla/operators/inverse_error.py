"""chlo.erf_inv, by which normal random numbers are made of uniform ones: two polynomials (M. Giles, 2010)."""

from typing import Any

import numpy as np

from tvm_neuron.frontend.graph import Graph
from tvm_neuron.frontend.xla.operators.elementwise import elementwise
from tvm_neuron.frontend.xla.region import Converter

_CENTRE = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503, -0.00417768164,
    0.246640727, 1.50140941,
)  # fmt: skip
_TAIL = (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047,
    1.00167406, 2.83297682,
)  # fmt: skip


def _erf_inv(graph: Graph, names: list[str], dtype: np.dtype[Any]) -> str:
    """x p(w), w = -log((1 - x)(1 + x)): one polynomial of w - 2.5 below 5, one of sqrt(w) - 3 above."""

    def number(value: float) -> str:
        return graph.constant(value, dtype)

    (x,) = names
    product = graph.add("Mul", graph.add("Sub", number(1), x), graph.add("Add", number(1), x))
    w = graph.add("Neg", graph.add("Log", product))
    is_central = graph.add("Less", w, number(5))
    tail = graph.add("Sub", graph.add("Sqrt", graph.add("Max", w, number(5))), number(3))
    place = graph.add("Where", is_central, graph.add("Sub", w, number(2.5)), tail)
    found = graph.add("Where", is_central, number(_CENTRE[0]), number(_TAIL[0]))
    for centre, outer in zip(_CENTRE[1:], _TAIL[1:], strict=True):
        weight = graph.add("Where", is_central, number(centre), number(outer))
        found = graph.add("Add", graph.add("Mul", found, place), weight)
    return str(graph.add("Mul", found, x))


CONVERTERS: dict[str, Converter] = {"chlo.erf_inv": elementwise(_erf_inv)}
