"""Transformers as both of torch's exporters write them: each agrees with onnxruntime as far as bf16 lets it."""

import pytest

from tests.models.agreement import Case
from tests.models.zoo.transformers import TRANSFORMERS

pytestmark = [pytest.mark.slow, pytest.mark.torch, pytest.mark.filterwarnings("ignore")]  # torch warns of itself
LEFT = {"Gather", "Unsqueeze", "Reshape", "Cast", "And", "Where", "IsNaN", "Erf", "Flatten", "Expand", "Add"}
ON_CPU = {
    "bert": LEFT | {"GatherND"},
    "distilbert": LEFT | {"GatherND"},
    "vit": {"Erf", "IsNaN", "Where"},
    "gpt2": LEFT | {"ScatterElements", "ScatterND", "LessOrEqual"},
}
"""Kinds of operators, at most, that each leaves to the CPU: tokens, positions, masks are integers and truth values."""


@pytest.mark.parametrize("dynamo", [False, True], ids=["TorchScript", "dynamo"])
@pytest.mark.parametrize("name", TRANSFORMERS)
def test_agrees_with_onnxruntime(name: str, dynamo: bool) -> None:
    found = Case(*TRANSFORMERS[name](dynamo)).run("inf1")
    assert set(found.on_cpu) <= ON_CPU[name]
    assert max(found.bounds.values()) < 0.1  # of twelve layers; more would hold for nearly anything
    assert found.errors[found.worst] <= found.bounds[found.worst], f"{found.worst}: {found.errors} {found.bounds}"
