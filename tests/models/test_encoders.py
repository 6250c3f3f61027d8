"""BERT and ViT written without torch: small ones agree with onnxruntime as far as bf16 lets them."""

import numpy as np
import onnx
import pytest

from tests.models.agreement import Case, random_inputs
from tests.models.zoo.encoders import TYPES, VOCABULARY, bert, vit
from tests.onnx_models import Arrays

SMALL_BERT = bert(batch=2, tokens=16, hidden=64, heads=2, layers=2)
SMALL_VIT = vit(size=64, patch=16, hidden=64, heads=2, layers=2)
MOST_EXPLAINED = 0.3  # a bound above it would hold for nearly anything


def _tokens(model: onnx.ModelProto) -> Arrays:
    """Tokens of any kind; the first of each sentence is always there."""
    rng = np.random.default_rng(1)
    shape = random_inputs(model)["ids"].shape
    mask = rng.integers(0, 2, shape)
    mask[:, 0] = 1
    return {"ids": rng.integers(0, VOCABULARY, shape), "types": rng.integers(0, TYPES, shape), "mask": mask}


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
@pytest.mark.parametrize(
    ("model", "inputs"),
    [(SMALL_BERT, _tokens(SMALL_BERT)), (SMALL_VIT, random_inputs(SMALL_VIT))],
    ids=["bert", "vit"],
)
def test_agrees_with_onnxruntime(model: onnx.ModelProto, inputs: Arrays, chip: str) -> None:
    found = Case(model, inputs).run(chip)
    assert set(found.on_cpu) <= {"Gather"}  # small ones are no work for inf1
    assert max(found.bounds.values()) < MOST_EXPLAINED
    assert found.errors[found.worst] <= found.bounds[found.worst], f"{found.worst}: {found.errors} {found.bounds}"
