"""Transformers as both of torch's exporters write them: each agrees with onnxruntime as far as bf16 lets it."""

import pytest

from tests.models.agreement import Case
from tests.models.zoo.transformers import TRANSFORMERS

pytestmark = [pytest.mark.slow, pytest.mark.torch, pytest.mark.filterwarnings("ignore")]  # torch warns of itself
LAYERS = 3  # a first, a last and what lies between layers: exporters write all others alike
ON_CORE = {"Conv", "Gemm", "LayerNormalization", "MatMul", "Softmax", "Tanh"}
"""Nothing of these is left to the CPU, whatever becomes of tokens, positions, masks and of what lies between them."""


CASES = [
    pytest.param(name, dynamo, id=f"{name}-{'dynamo' if dynamo else 'TorchScript'}",
                 marks=pytest.mark.many if (name in ("bert", "gpt2")) != dynamo else ())
    for name in TRANSFORMERS for dynamo in (False, True)
]  # fmt: skip
"""Each network by one exporter, each exporter's two networks; the others are `many`."""


@pytest.mark.parametrize(("name", "dynamo"), CASES)
def test_agrees_with_onnxruntime(name: str, dynamo: bool) -> None:
    found = Case(*TRANSFORMERS[name](dynamo, layers=LAYERS)).run("inf1")
    assert not ON_CORE & set(found.on_cpu)
    assert max(found.bounds.values()) < 0.1  # more would hold for nearly anything
    assert found.errors[found.worst] <= found.bounds[found.worst], f"{found.worst}: {found.errors} {found.bounds}"
