"""The cases of the onnx package's own backend test suite: models, inputs, and what their outputs are held to."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.loader import load_model_tests

from tvm_neuron.runtime.tensors import widened

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")
# Products are rounded to bf16 (2^-9) and summed over up to some hundred terms; everything else is far closer.
TOLERANCE = 2e-2
_DRAWN = {"Bernoulli", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}


def select(wanted: Sequence[str] = ()) -> list[TestCase]:
    """All cases, or those whose names contain one of `wanted`."""
    cases = [case for kind in KINDS for case in load_model_tests(kind=kind)]
    return [case for case in cases if not wanted or any(part in case.name for part in wanted)]


def load(case: TestCase) -> tuple[onnx.ModelProto, Sequence[tuple[Sequence[Any], Sequence[Any]]]]:
    """The model of a case, and inputs and expected outputs of each of its data sets."""
    if case.model is not None:
        return case.model, [tuple(map(_arrays, data)) for data in case.data_sets or ()]
    folder = Path(case.model_dir)
    sets = sorted(folder.glob("test_data_set_*"))
    return onnx.load(folder / "model.onnx"), [(_tensors(each, "input"), _tensors(each, "output")) for each in sets]


def _arrays(values: Sequence[Any]) -> list[Any]:
    """Values of the suite's Python cases, which give those of dtypes that NumPy lacks as ONNX tensors."""
    return [numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value for value in values]


def _tensors(folder: Path, kind: str) -> list[np.ndarray]:
    files = [folder / f"{kind}_{number}.pb" for number in range(len(list(folder.glob(f"{kind}_*.pb"))))]
    return [numpy_helper.to_array(onnx.TensorProto.FromString(file.read_bytes())) for file in files]


def difference(model: onnx.ModelProto, found: Sequence[np.ndarray], outputs: Sequence[Any]) -> str:
    """What is wrong with the outputs `found`, "" if nothing is."""
    for number, (value, actual) in enumerate(zip(outputs, found, strict=True)):
        expected = widened(np.asarray(value))
        if (actual.shape, actual.dtype) != (expected.shape, expected.dtype):
            return f"output {number} is {actual.dtype}{list(actual.shape)}, not {expected.dtype}{list(expected.shape)}"
        if _DRAWN & {node.op_type for node in model.graph.node}:
            continue  # the standard leaves the generator open, so only dtypes and shapes can be compared
        a, b = actual.astype(np.float64), expected.astype(np.float64)
        scale = np.abs(b[np.isfinite(b)]).max(initial=1e-3)
        if not np.allclose(a, b, rtol=TOLERANCE, atol=TOLERANCE * scale, equal_nan=True):
            return f"output {number} differs by up to {np.nanmax(np.abs(a - b))}"
    return ""
