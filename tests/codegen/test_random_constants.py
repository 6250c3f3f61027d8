"""Every constant that is computed at compile time, by the importer or by the code generator, is onnxruntime's."""

from collections import Counter

import numpy as np
import onnx
import pytest

from tests.codegen.random_constants import Array, RandomConstants, run_node
from tvm_neuron import relay
from tvm_neuron.codegen.legalise import legalise
from tvm_neuron.codegen.passes.fold import fold_constants
from tvm_neuron.errors import NeuronError
from tvm_neuron.frontend.normalize import normalize
from tvm_neuron.frontend.onnx import importer

# A few roundings of float32, in which engines and so the code generator compute; float16 is rounded once more.
TOLERANCES = {"float16": 2.0**-9, "float32": 2.0**-15, "float64": 2.0**-15}


def folded(model: onnx.ModelProto) -> dict[str, Array] | None:
    """The outputs of a model without inputs; None if a part of it runs on the CPU."""
    try:
        mod, params = relay.frontend.from_onnx(model)
        graph = legalise(normalize(mod, params)["main"])
        fold_constants(graph)
    except NeuronError:
        return None
    found = {}
    for output in graph.outputs:
        (block,) = graph.writers(output)
        (source,) = block.sources()
        assert source.value is not None
        found[output.name] = source.value
    return found


def is_near(found: Array, exact: Array) -> bool:
    tolerance = TOLERANCES.get(exact.dtype.name, 0)
    a, b = (value.astype(np.float64) if tolerance else value for value in (found, exact))
    if not tolerance:
        return bool(np.array_equal(a, b))
    scale = np.abs(b[np.isfinite(b)]).max(initial=1e-3)  # what is summed up loses digits of the largest
    return bool(np.allclose(a, b, rtol=tolerance, atol=tolerance * min(scale, 1e3), equal_nan=True))


def check(seeds: range, steps: int) -> Counter[str]:
    """Each operator by itself, on the operands that we made; how many there were of each."""
    checked: Counter[str] = Counter()
    for seed in seeds:
        constants = RandomConstants(seed, steps)
        found = folded(constants.model())
        if found is None:
            continue
        values = constants.constants | found
        for step in constants.steps:
            exact = run_node(step.node, {name: values[name] for name in step.node.input if name}, constants.opset)
            assert exact is not None
            for name, value in exact.items():
                where = f"{step.node.op_type} of seed {seed}, opset {constants.opset}"
                assert (found[name].dtype, found[name].shape) == (value.dtype, value.shape), where
                assert is_near(found[name], value), where
            checked[step.node.op_type] += 1
    return checked


@pytest.fixture(params=["importer", "code generator"])
def _by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who computes them: what the importer leaves is for the code generator."""
    if request.param == "code generator":
        monkeypatch.setattr(importer, "is_evaluated", lambda *_: False)


@pytest.mark.usefixtures("_by")
def test_operators() -> None:
    checked = check(range(100), 1)
    assert checked.total() > 80
    assert len(checked) > 30


@pytest.mark.usefixtures("_by")
def test_chains() -> None:
    assert check(range(1000, 1050), 5).total() > 100

