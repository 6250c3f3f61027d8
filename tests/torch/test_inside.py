"""From inside PyTorch: traced models are saved and loaded, `torch.compile` runs on the core what can run there."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.torch.networks import net, relative_error
from tvm_neuron.errors import InputError, ModelError, NeffError

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]  # torch warns of itself
BFLOAT16 = 2.0**-8 * 4
"""Products of bfloat16, whose roundings (2^-9 each) of both operands add up over three layers."""


def test_a_traced_model_is_saved_and_runs_in_another_process(tmp_path: Path) -> None:
    from tvm_neuron import torch as neuron

    model, x = net()
    traced = neuron.trace(model, x, "neuron/inf2")
    with torch.no_grad():
        right = model(x)
    assert list(traced(x)) == list(right)
    torch.jit.save(traced, tmp_path / "model.pt")
    torch.save(x, tmp_path / "x.pt")
    script = (
        "import torch, tvm_neuron.torch, sys\n"
        "model = torch.jit.load(sys.argv[1] + '/model.pt')\n"
        "torch.save(model(torch.load(sys.argv[1] + '/x.pt')), sys.argv[1] + '/y.pt')"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True)
    found = torch.load(tmp_path / "y.pt")
    for name, tensor in right.items():
        assert relative_error(found[name], tensor) < BFLOAT16


def test_results_of_any_structure() -> None:
    from tvm_neuron import torch as neuron

    x = torch.randn(3, 4)
    assert isinstance(neuron.trace(torch.relu, x)(x), torch.Tensor)
    assert isinstance(neuron.trace(lambda x: [x.relu(), x.abs()], x)(x), list)
    nested = neuron.trace(lambda x: (x.relu(), {"a": [x.abs(), x.neg()]}), x)(x)
    assert [relative_error(got, right) < BFLOAT16 for got, right in zip(nested, (x.relu(), x.abs(), -x), strict=True)]


def test_a_traced_model_says_what_is_wrong() -> None:
    from tvm_neuron import torch as neuron

    model, x = net()
    traced = neuron.trace(model, x)
    with pytest.raises((InputError, RuntimeError), match=r"\[1, 3, 8, 8\]|\(1, 3, 8, 8\)"):
        traced(torch.randn(1, 3, 8, 8))
    damaged = torch.zeros(100, dtype=torch.uint8)
    with pytest.raises((NeffError, RuntimeError), match="the packed library is damaged"):
        torch.ops.tvm_neuron.run([x], damaged, "0")


def test_analyze_names_modules_and_reasons() -> None:
    from tvm_neuron import torch as neuron

    model, x = net()
    found = neuron.analyze(torch.nn.Sequential(model.layers, torch.nn.Unfold(3), torch.nn.Softmax(1)).eval(), x)
    assert {row.name for row in found.rows} >= {"0.0.conv1", "0.1", "2"}
    assert all(row.reason for row in found.on_cpu)
    assert "0.0.conv1 (Conv)" in str(found)


def test_compiled_graphs_follow_shapes_and_weights() -> None:
    from tvm_neuron import torch as neuron

    model, x = net()
    compiled = torch.compile(model, backend="neuron", options={"target": "neuron/inf2"}, dynamic=False)
    start = len(neuron.graphs())
    with torch.no_grad():
        for given in (x, torch.randn(5, 3, 8, 8), x):
            assert relative_error(compiled(given)["classes"], model(given)["classes"]) < BFLOAT16
        assert len(neuron.graphs()) == start + 2  # the third call has known shapes
        model.head.weight.mul_(3)
        assert relative_error(compiled(x)["classes"], model(x)["classes"]) < BFLOAT16
    assert "us on inf2" in str(neuron.graphs()[-1])


def test_what_cannot_be_imported_stays_in_torch() -> None:
    from tvm_neuron import torch as neuron

    def values(x: torch.Tensor) -> torch.Tensor:
        found = torch.linalg.svdvals(torch.relu(x @ x.T))
        torch._dynamo.graph_break()
        return torch.sigmoid(found) * 2 + found.sum()

    x = torch.randn(6, 6)
    with torch.no_grad():
        assert relative_error(torch.compile(values, backend="neuron")(x), values(x)) < BFLOAT16
    first, second = neuron.graphs()[-2:]
    assert [name for name in first.in_torch if "svdvals" in name]
    assert len(first.reports) == 1
    assert not second.in_torch


def test_unknown_options_of_the_backend() -> None:
    compiled = torch.compile(torch.relu, backend="neuron", options={"chip": "inf2"})
    with pytest.raises((ModelError, RuntimeError), match="options chip: the backend 'neuron' has only 'target'"):
        compiled(torch.ones(2))
