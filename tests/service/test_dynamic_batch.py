"""Any number of rows on a library compiled for four: the same numbers as row by row, and nothing of the padding."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from tests.cli.conftest import Cli, cli, onnx_file  # noqa: F401 (fixtures)
from tests.onnx_models import make_model
from tests.service.conftest import WEIGHTS
from tvm_neuron import BuildOptions, relay
from tvm_neuron.errors import InputError, OptionError


def built(nodes: list[Any], outputs: list[str], **options: Any) -> Any:
    model = make_model(nodes, {"x": [4, 64], "z": [4, 8]}, outputs, {"w": WEIGHTS}, opset=18)
    mod, params = relay.frontend.from_onnx(model)
    library = relay.build(mod, target="neuron", params=params, options=BuildOptions(**options))
    return relay.graph_executor.GraphModule(library["default"]())


PRODUCT = [helper.make_node("MatMul", ["x", "w"], ["p"], "product"), helper.make_node("Add", ["p", "z"], ["y"], "add")]


@pytest.fixture(scope="module")
def anysize() -> Any:
    return built(PRODUCT, ["y", "p"], dynamic_batch=True)


@pytest.fixture(scope="module")
def fixed() -> Any:
    return built(PRODUCT, ["y", "p"])


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 23), st.integers(0, 1000))
def test_every_row_as_in_a_batch_of_its_own(anysize: Any, fixed: Any, rows: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, 64)).astype(np.float32)
    z = rng.standard_normal((rows, 8)).astype(np.float32)
    anysize.run(x=x, z=z)
    found = [anysize.get_output(index).numpy() for index in range(2)]
    assert [each.shape for each in found] == [(rows, 8), (rows, 8)]
    for row in range(rows):
        fixed.run(x=np.repeat(x[row : row + 1], 4, 0), z=np.repeat(z[row : row + 1], 4, 0))
        for index in range(2):
            assert found[index][row].tobytes() == fixed.get_output(index).numpy()[0].tobytes()
    bound = 2.0**-7 * (np.abs(x.astype(np.float64)) @ np.abs(WEIGHTS))  # both operands are rounded to bf16
    assert (np.abs(found[1] - x.astype(np.float64) @ WEIGHTS) <= bound).all()


def test_inputs_of_different_sizes(anysize: Any) -> None:
    with pytest.raises(InputError, match="every input must have the same number of rows, from 1 on: 'x' 3, 'z' 5"):
        anysize.run(x=np.ones((3, 64), np.float32), z=np.ones((5, 8), np.float32))
    with pytest.raises(InputError, match="shape"):
        anysize.run(x=np.ones((3, 63), np.float32))


def test_what_has_no_batch_is_refused() -> None:
    nodes = [*PRODUCT, helper.make_node("Transpose", ["y"], ["t"], perm=[1, 0])]
    with pytest.raises(OptionError, match=r"dynamic_batch needs a batch as first dimension.*'t' \[8, 4\]"):
        built(nodes, ["t"], dynamic_batch=True)


def test_on_the_command_line(cli: Cli, onnx_file: Path, tmp_path: Path) -> None:  # noqa: F811
    code, _, told = cli("compile", onnx_file, "--dynamic-batch", "--output", tmp_path / "n.neff")
    assert code == 1
    assert "--dynamic-batch: a .neff has one batch size; write a library" in told
