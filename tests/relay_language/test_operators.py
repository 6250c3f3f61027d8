"""Operators of Relay's language on the core and the CPU, beside NumPy in float64: many in one function and build."""

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.relay_language.families.elementwise import ELEMENTWISE
from tests.relay_language.families.indexing import INDEXING
from tests.relay_language.families.networks import NETWORKS
from tests.relay_language.families.reductions import REDUCTIONS
from tests.relay_language.families.shapes import SHAPES
from tvm_neuron import BuildOptions, build_options, relay
from tvm_neuron.relay.op import OPERATORS

FAMILIES = {
    "elementwise": ELEMENTWISE,
    "reductions": REDUCTIONS,
    "shapes": SHAPES,
    "indexing": INDEXING,
    "nn": NETWORKS,
}
SLOW = ("elementwise", "indexing", "nn", "reductions")


@pytest.mark.parametrize("family", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in FAMILIES])
def test_operators_agree_with_numpy(family: str) -> None:
    cases = FAMILIES[family]
    variables, values, results = [], {}, []
    for number, (_, make, _, data) in enumerate(cases):
        own = []
        for position, array in enumerate(data):
            own.append(relay.var(f"x{number}_{position}", shape=array.shape, dtype=array.dtype.name))
            values[own[-1].name_hint] = array
        variables += own
        made = make(*own)
        results.append(list(made) if isinstance(made, relay.TupleWrapper) else [made])
    function = relay.Function(variables, relay.Tuple([value for row in results for value in row]))
    with build_options(BuildOptions(fp32_cast="none", device="neuron/inf2")):
        found = _flat(relay.create_executor(target="neuron").evaluate(function)(**values))
    for (name, _, wanted, data), row in zip(cases, results, strict=True):
        exact = wanted(*(array.astype("float64") if array.dtype == np.float32 else array for array in data))
        exact = _flat(exact if isinstance(exact, list | tuple) else [exact])
        for value in exact:
            actual = found.pop(0)
            assert actual.shape == np.shape(value), name
            # float32 arithmetic, and the tables that functions of the activation engine are evaluated by
            np.testing.assert_allclose(actual.astype("float64"), value, rtol=2e-5, atol=2e-5, err_msg=name)
        assert len(row) in (1, len(exact)), name
    assert not found


def _flat(values: object) -> list[NDArray]:
    if isinstance(values, list | tuple):
        return [part for value in values for part in _flat(value)]
    return [values.numpy() if hasattr(values, "numpy") else np.asarray(values)]


def test_every_operator_says_what_it_does() -> None:
    assert len(OPERATORS) > 150
    assert all(each.summary.endswith(".") for each in OPERATORS.values())
