"""`tvm_neuron.compile` takes PyTorch's models in every form, keeps names and dtypes, and says what it can't take."""

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
import tvm

import tvm_neuron
from tests.torch.networks import Net, Words, net, relative_error
from tvm_neuron.errors import ModelError
from tvm_neuron.relay import frontend, graph_executor
from tvm_neuron.runtime import manifest

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore:.*:DeprecationWarning")]  # torch warns of itself
BFLOAT16 = 2.0**-8 * 4
"""Products of bfloat16, whose roundings (2^-9 each) of both operands add up over three layers."""


def outputs(library, *inputs) -> list[torch.Tensor]:
    module = graph_executor.GraphModule(library["default"](tvm.cpu()))
    for number, tensor in enumerate(inputs):
        module.set_input(number, tvm.runtime.from_dlpack(tensor))
    module.run()
    return [torch.from_dlpack(module.get_output(n)).clone() for n in range(module.get_num_outputs())]


def wanted(model: torch.nn.Module, *inputs) -> list[torch.Tensor]:
    with torch.no_grad():
        found = model(*inputs)
    return [*found.values()] if isinstance(found, dict) else [*found]


class Tuple(torch.nn.Module):
    """What TorchScript can say of a model whose result is a dictionary."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(self.model(x).values())


def forms(folder: Path) -> dict[str, tuple]:
    """Models and the example inputs that are given with each."""
    model, x = net()
    program = torch.export.export(model, (x,))
    torch.export.save(program, folder / "model.pt2")
    onnx.save(torch.onnx.export(model, (x,), dynamo=True, verbose=False).model_proto, folder / "model.onnx")
    return {
        "module": (model, x),
        "named": (model, {"x": x}),
        "program": (program, None),
        "pt2": (folder / "model.pt2", None),
        "onnx": (str(folder / "model.onnx"), None),
        "function": (lambda x: model(x), x),
        "script": (torch.jit.trace(Tuple(model), x), (x,)),
    }


@pytest.mark.filterwarnings("ignore")
def test_every_form_gives_what_torch_gives(tmp_path: Path) -> None:
    model, x = net()
    for name, (form, examples) in forms(tmp_path).items():
        library = tvm_neuron.compile(form, examples, "neuron/inf2")
        for found, right in zip(outputs(library, x), wanted(model, x), strict=True):
            assert relative_error(found, right) < BFLOAT16, name


def test_operators_are_named_by_their_modules() -> None:
    model, x = net()
    rows = manifest(tvm_neuron.compile(model, x).module)["placement"]
    assert {row["name"] for row in rows} == {"layers.0.conv1", "layers.0", "layers.1", "mean", "head"}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_dtypes_are_kept(dtype: torch.dtype) -> None:
    torch.manual_seed(1)
    model, tokens = Words(dtype).eval(), torch.randint(0, 50, (2, 7))
    library = tvm_neuron.compile(model, tokens)
    scores, places = outputs(library, tokens)
    assert (scores.dtype, places.dtype) == (dtype, torch.int64)
    exact = wanted(model.double(), tokens)[0]
    assert relative_error(scores, exact) < BFLOAT16


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_dtypes_are_kept_where_batch_norms_are_folded(dtype: torch.dtype) -> None:
    torch.manual_seed(5)
    layers = [torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.ConvTranspose2d(8, 4, 2, 2),
              torch.nn.BatchNorm2d(4)]  # fmt: skip
    model = torch.nn.Sequential(*layers)
    for _ in range(3):
        model(torch.randn(4, 3, 8, 8) * 2 + 1)  # statistics that are not those of a new network
    x = torch.randn(2, 3, 8, 8)
    with torch.no_grad():
        right = model.eval()(x)
    (found,) = outputs(tvm_neuron.compile(model.to(dtype), x.to(dtype)), x.to(dtype))
    assert found.dtype == dtype
    assert relative_error(found, right) < BFLOAT16


@pytest.mark.filterwarnings("ignore")
def test_an_open_batch_takes_any_number_of_rows() -> None:
    model, x = net()
    program = torch.export.export(model, (x,), dynamic_shapes={"x": {0: torch.export.Dim("batch", min=2, max=64)}})
    library = tvm_neuron.compile(program)
    more = torch.randn(5, 3, 8, 8)
    assert relative_error(outputs(library, more)[0], wanted(model, more)[0]) < BFLOAT16


@pytest.mark.filterwarnings("ignore")
def test_other_open_sizes_are_said() -> None:
    model, x = net()
    program = torch.export.export(model, (x,), dynamic_shapes={"x": {2: torch.export.Dim("height", min=4, max=64)}})
    with pytest.warns(UserWarning, match=r"more open than its batch.*sizes \(x \[2, 3, 8, 8\]\) alone"):
        tvm_neuron.compile(program)


def test_what_export_refuses_is_traced_and_said() -> None:
    class Choosing(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.relu() if x.sum() > 0 else x.sin()

    x = torch.rand(4, 4)
    with pytest.warns(UserWarning, match="torch.export can't capture the Choosing .* traced instead"):
        library = tvm_neuron.compile(Choosing().eval(), x)
    assert relative_error(outputs(library, x)[0], x.relu()) < BFLOAT16


class Inverse(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.inv(x)


class Memory:
    """Of a class that torch does not know, as caches of decoders are; it knows itself."""

    def __init__(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        self.layers, self.kind, self.itself = [(keys, values)], torch.float32, self


class Remembering(torch.nn.Module):
    def __init__(self, chooses: bool) -> None:
        super().__init__()
        self.inner, self.chooses = torch.nn.Linear(4, 4), chooses

    def forward(self, first: torch.Tensor, other: torch.Tensor) -> dict[str, object]:
        found = self.inner(first) - other
        if self.chooses and first.sum() > 0:  # which can only be traced
            found = found * 2
        return {"found": found, "memory": Memory(found.sin(), other + 1), "none": None, "number": 3}


@pytest.mark.filterwarnings("ignore:torch.export can't capture the Remembering")
@pytest.mark.parametrize("chooses", [False, True])
def test_tensors_of_results_are_found_whatever_they_are_packed_in(chooses: bool) -> None:
    torch.manual_seed(2)
    model, (first, other) = Remembering(chooses).eval(), torch.rand(2, 8, 4)
    found = outputs(tvm_neuron.compile(model, {"first": first, "other": other}), first, other)
    with torch.no_grad():
        right = model(first, other)
    (keys, values), *_ = right["memory"].layers
    assert len(found) == 3
    for ours, theirs in zip(found, (right["found"], keys, values), strict=True):
        assert relative_error(ours, theirs) < BFLOAT16
    assert not model._forward_hooks


@pytest.mark.parametrize(
    ("examples", "message"),
    [
        ({"y": torch.ones(2)}, "the script has the arguments x before one that was given"),
        ({"z": torch.ones(2)}, "the script takes the arguments x, y, got 0 by position and z"),
        ((torch.ones(2),) * 3, "the script takes the arguments x, y, got 3 by position"),
    ],
)
def test_arguments_that_a_script_has_not(examples, message: str) -> None:
    script = torch.jit.trace(lambda x, y: x + y, (torch.ones(2), torch.ones(2)))
    with pytest.raises(ModelError, match=message):
        tvm_neuron.compile(script, examples)


@pytest.mark.parametrize(
    "model",
    [
        lambda: torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Dropout(0.0), torch.nn.InstanceNorm1d(4)),
        lambda: torch.nn.TransformerEncoderLayer(8, 2, 8, dropout=0, batch_first=True),
    ],
)
def test_training_mode_that_makes_no_difference_is_no_matter(model) -> None:
    module, x = model(), torch.randn(1, 4, 8)
    library = tvm_neuron.compile(module, x)
    assert module.training
    assert relative_error(outputs(library, x)[0], module(x).detach()) < BFLOAT16


@pytest.mark.parametrize(
    ("model", "examples", "message"),
    [
        (lambda: Net().eval(), None, "a Net needs example_inputs"),
        (Net, torch.ones(1, 3, 8, 8), "the Net is in training mode.*call its eval"),
        (lambda: torch.nn.LSTM(8, 8, 2, dropout=0.1), torch.ones(3, 1, 8), "the LSTM is in training mode"),
        (lambda: torch.nn.InstanceNorm1d(4, track_running_stats=True), torch.ones(1, 4, 8), "1d is in training"),
        (lambda: torch.nn.TransformerEncoderLayer(8, 2, 8), torch.ones(1, 4, 8), "Layer is in training mode"),
        (lambda: torch.nn.Linear(3, 4), torch.ones(1, 8), "the Linear is in training mode"),
        (lambda: Net().eval(), torch.ones(1, 4, 8, 8), "the Net fails with the example inputs: RuntimeError"),
        (lambda: 3, None, "takes the path of a model.* got int"),
        (lambda: torch.sin, np.ones(1), "a plain function is taken with tensors of PyTorch.*of JAX give jax.jit"),
        (lambda: torch.nn.Module, torch.ones(1), "fails with the example inputs"),
        (lambda: torch.nn.Sequential(torch.nn.ReLU(), Inverse()).eval(), torch.eye(3), r"operator '1\.linalg_inv_ex':"),
    ],
)
def test_what_cannot_be_taken(model, examples, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        tvm_neuron.compile(model(), examples)


def test_pickles_are_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    model, _ = net()
    torch.save(model.state_dict(), tmp_path / "weights.pt")
    with pytest.raises(ModelError, match=r"holds a pickle: weights alone.*Write the program"):
        tvm_neuron.compile(tmp_path / "weights.pt")
    (tmp_path / "torn.pt2").write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(ModelError, match="can't be read as a program of torch"):
        tvm_neuron.compile(tmp_path / "torn.pt2")
    assert not caplog.records  # torch would log its traceback
    with pytest.raises(ModelError, match="can't be read: No such file"):
        tvm_neuron.compile(tmp_path / "none.pt2")


def test_what_the_exporter_cannot_write_is_said() -> None:
    with pytest.raises(ModelError, match="torch's exporter to ONNX can't write operator '_linalg_svd'"):
        tvm_neuron.compile(torch.linalg.svdvals, torch.rand(4, 4))


def test_from_pytorch_with_the_names_given() -> None:
    model, x = net()
    script = torch.jit.trace(model.layers, x)
    mod, params = frontend.from_pytorch(script, [("image", (2, 3, 8, 8))])
    library = tvm_neuron.relay.build(mod, target="neuron", params=params)
    module = graph_executor.GraphModule(library["default"](tvm.cpu()))
    module.set_input("image", x.numpy())
    module.run()
    with torch.no_grad():
        right = model.layers(x).numpy()
    found = module.get_output(0).numpy()
    assert np.linalg.norm(found - right) < BFLOAT16 * np.linalg.norm(right)


@pytest.mark.parametrize(
    ("infos", "more", "message"),
    [
        ([("x", (2, 3, 8, 8), "float32")], {}, "each is a name and a shape"),
        ([("x", ((2, 3, 8, 8), "complicated"))], {}, "the dtype 'complicated', which torch has not"),
        ([("x", (2, 3, 8, 8))], {"custom_convert_map": {"aten::mine": None}}, "converters for aten::mine"),
    ],
)
def test_what_from_pytorch_refuses(infos, more, message: str) -> None:
    model, x = net()
    with pytest.raises(ModelError, match=message):
        frontend.from_pytorch(torch.jit.trace(model.layers, x), infos, **more)
    with pytest.raises(ModelError, match="takes a ScriptModule, got Net"):
        frontend.from_pytorch(model, infos)


class Repeated(torch.nn.Module):
    """A layer until its result is small, however often that is."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.head = torch.nn.Linear(8, 8), torch.nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        def goes_on(x: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
            return (x.abs().sum() > 0.9) & (count < 50)

        def step(x: torch.Tensor, count: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return torch.tanh(self.layer(x)) * 0.9, count + 1

        y, count = torch.while_loop(goes_on, step, (x * 2, torch.tensor(0)))
        return self.head(y), count


@pytest.mark.filterwarnings("ignore::FutureWarning")  # torch's own, of its exporter
def test_while_loop_runs_on_the_cpu_between_parts_on_the_core() -> None:
    torch.manual_seed(3)
    model, x = Repeated().eval(), torch.randn(4, 8)
    options = tvm_neuron.BuildOptions(fp32_cast="none", minimum_segment_size=1)  # however small they are
    library = tvm_neuron.compile(model, (x,), "neuron/inf2", options=options)
    for each in (x, x * 0.01, x * 30):
        (found, count), (right, times) = outputs(library, each), wanted(model, each)
        assert count.item() == times.item()
        torch.testing.assert_close(found, right, rtol=1e-5, atol=1e-5)
    rows = {row["name"]: row for row in manifest(library.module)["placement"]}
    (loop,) = (name for name, row in rows.items() if row["op"] == "Loop")
    assert rows[loop]["reason"] == "its end depends on data, so it runs as a loop"
    assert rows["head"]["where"] == "neuroncore"
    assert any(name.startswith(f"{loop}/") and row["op"] == "Tanh" for name, row in rows.items())
