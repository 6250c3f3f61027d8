"""tvm.contrib.torch: models and functions in TVMScript as modules of PyTorch agree with PyTorch."""

from pathlib import Path

import pytest
import tvm

import tvm_neuron.relay  # noqa: F401 - its names

from tvm.script import tir as T  # noqa: N812 # isort: skip
from tvm_neuron.build import BuildOptions
from tvm_neuron.errors import ModelError

EXACT = BuildOptions(fp32_cast="none", device="neuron/inf2")

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore::DeprecationWarning")]  # torch warns of itself


@T.prim_func
def depthwise(a: T.Buffer((7, 12), "float32"), b: T.Buffer((7, 4), "float32"), c: T.Buffer((7, 9), "float32")) -> None:
    for j, i, k in T.grid(7, 9, 4):
        with T.block():
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                c[vj, vi] = T.float32(0)
            c[vj, vi] += b[vj, vk] * a[vj, vi + vk]


@T.prim_func
def writes_its_first(a: T.Buffer((7,), "float32"), b: T.Buffer((7,), "float32")) -> None:
    for i in range(7):
        with T.block():
            v = T.axis.spatial(7, i)
            a[v] = b[v]


def test_a_function_in_tvmscript() -> None:
    import torch
    from tvm.contrib.torch import as_torch

    torch.manual_seed(0)
    a, b, c = torch.randn(7, 12), torch.randn(7, 4), torch.zeros(7, 9)
    expected = torch.nn.functional.conv1d(a, b.view(7, 1, 4), groups=7)
    for made in (as_torch(depthwise), as_torch(tvm.IRModule({"f": depthwise})), as_torch(lambda: depthwise)()):
        assert "def depthwise" in made.script() or "T.grid" in made.script()
        made.build(options=EXACT)
        c.zero_()
        assert made(a, b, c)[2] is c
        torch.testing.assert_close(c, expected)
    made.tune()
    made(a, b, c)
    torch.testing.assert_close(c, expected, rtol=0, atol=0.1)  # bfloat16, by default


def test_a_model_is_compiled_saved_and_loaded(tmp_path: Path) -> None:
    import torch
    from tvm.contrib.torch import optimize_torch

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 6, 3), torch.nn.ReLU(), torch.nn.Conv2d(6, 4, 3)).eval()
    x = torch.randn(2, 1, 8, 8)
    made = optimize_torch(model, x, max_trials_global=4, options=EXACT)
    torch.save(made, tmp_path / "model.pt")
    loaded = torch.load(tmp_path / "model.pt")
    with torch.no_grad():
        expected = model(x)
    torch.testing.assert_close(made(x), expected, rtol=1e-4, atol=1e-5)
    assert torch.equal(loaded(x), made(x))


def test_what_is_refused() -> None:
    import torch
    from tvm.contrib.torch import as_torch

    with pytest.raises(ModelError, match="the function takes 3 tensors, 1 were given"):
        as_torch(depthwise)(torch.zeros(1))
    with pytest.raises(ModelError, match="of the buffers a, b, those that the function writes have to be the last"):
        as_torch(writes_its_first)(torch.zeros(7), torch.zeros(7))
    with pytest.raises(ModelError, match="as_torch takes one function in TVMScript, the module has 0"):
        as_torch(tvm.IRModule())
