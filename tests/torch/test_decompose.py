"""What torch's exporter has no rule for becomes simpler operators that give what torch gives."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import tvm
from torch import Tensor
from torch.nn import functional

import tvm_neuron
from tvm_neuron.frontend.torch.decompose import TABLE, decomposed

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]
FLOAT32 = 2e-5  # approximations in float32, and sums of some dozens
GENERATOR = torch.Generator().manual_seed(0)


def _normal(*shape: int) -> Tensor:
    return torch.randn(shape, generator=GENERATOR)


def _repeated(*shape: int) -> Tensor:
    """Values of which many are equal."""
    return torch.randint(0, 4, shape, generator=GENERATOR).float()


SIGNED = torch.tensor([0.0, -0.0, 1.5, -2.0, 3e30, -3e-30])
HOLES = torch.tensor([[1.0, float("nan"), -2.0], [float("nan"), 5.0, 0.5]])
EDGES = torch.sort(_normal(3, 7))[0]
CASES: dict[str, tuple[Callable[..., Any], tuple[Tensor, ...]]] = {
    "lgamma": (torch.lgamma, (torch.cat([torch.linspace(-5.3, 12, 40), torch.tensor([1.0, 2.0, 150.0])]),)),
    "digamma": (torch.digamma, (torch.cat([torch.linspace(-5.3, 12, 40), torch.tensor([1.0, 150.0])]),)),
    "i0": (torch.i0, (torch.linspace(-20, 20, 41),)),
    "erfinv": (torch.erfinv, (torch.tensor([-0.99999, -0.9, -0.1, 0.0, 0.3, 0.97, 0.9999, 1.0]),)),
    "hypot": (torch.hypot, (SIGNED.unsqueeze(1), SIGNED)),
    "signbit": (torch.signbit, (SIGNED,)),
    "copysign": (torch.copysign, (_normal(6), SIGNED)),
    "fmax": (torch.fmax, (HOLES, HOLES.flip(1))),
    "fmin": (torch.fmin, (HOLES, HOLES.flip(1))),
    "rrelu": (functional.rrelu, (_normal(4, 7),)),
    "kthvalue": (lambda x: torch.kthvalue(x, 2, 1, keepdim=True), (_normal(3, 6, 4),)),
    "median": (lambda x: (torch.median(x, 1), torch.median(x)), (_normal(3, 6, 4),)),
    "mode": (lambda x: torch.mode(x, 1)[0], (_repeated(3, 9, 2),)),
    "searchsorted": (lambda x, y: torch.searchsorted(x, y, right=True), (EDGES, torch.cat([EDGES, _normal(3, 4)], 1))),
    "bucketize": (lambda x, y: torch.bucketize(x, y), (_normal(3, 4), EDGES[0])),
    "cdist": (lambda x, y: (torch.cdist(x, y), torch.cdist(x, y, 1.0)), (_normal(2, 5, 3), _normal(2, 4, 3))),
    "masked_scatter": (lambda x, y: x.masked_scatter(y > 1, y), (_normal(4, 6), _repeated(4, 6))),
    "linspace": (
        lambda x, y: (torch.linspace(x, y, 7), torch.linspace(x, 2.0, 1), torch.linspace(3.0, y, 1)),
        (torch.tensor(0.3), torch.tensor(-2.0)),
    ),
    "logspace": (
        lambda x, y: (torch.logspace(x, y, 7), torch.logspace(x, y, 1), torch.logspace(x, 2.0, 4, base=2.0)),
        (torch.tensor(0.3), torch.tensor(-2.0)),
    ),
    "logspace_of_a_negative_base": (lambda x: x * torch.logspace(0, 3, 4, base=-2.0), (_normal(3, 4),)),
    "cumprod": (lambda x: torch.cumprod(x, 1), (_normal(2, 9, 3),)),
    "cummax": (lambda x: torch.cummax(x, 1), (_repeated(2, 9, 3),)),
    "cummin": (lambda x: torch.cummin(x, 1), (_repeated(2, 9, 3) - 3,)),
    "of_one_number": (
        lambda x: (x.cumprod(0), torch.cummin(x, 0), torch.kthvalue(x, 1), torch.mode(x), torch.topk(x, 1)),
        (torch.tensor(2.0),),
    ),
    "adaptive_max_pool1d": (lambda x: functional.adaptive_max_pool1d(x, 4), (_normal(2, 3, 7),)),
    "adaptive_max_pool2d": (
        lambda x: functional.adaptive_max_pool2d(x, (3, 4), return_indices=True),
        (_repeated(2, 3, 7, 9),),
    ),
    "adaptive_max_pool3d": (lambda x: functional.adaptive_max_pool3d(x, (3, 2, 4)), (_normal(1, 2, 7, 5, 6),)),
    "adaptive_avg_pool3d": (lambda x: functional.adaptive_avg_pool3d(x, (3, 2, 4)), (_normal(1, 2, 7, 5, 6),)),
    "nearest": (lambda x: functional.interpolate(x, scale_factor=0.6), (_normal(1, 2, 11, 9),)),
    "corners": (
        lambda x: functional.interpolate(x, scale_factor=0.6, mode="bilinear", align_corners=True),
        (_normal(1, 2, 11, 9),),
    ),
}


class Module(torch.nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor) -> Any:
        return self.function(*inputs)


def leaves(found: Any) -> list[Tensor]:
    return torch.utils._pytree.tree_leaves(found)


def check(found: Any, wanted: Any) -> None:
    for got, right in zip(leaves(found), leaves(wanted), strict=True):
        assert got.dtype == right.dtype
        torch.testing.assert_close(got, right, rtol=FLOAT32, atol=FLOAT32, equal_nan=True)


@pytest.mark.parametrize("name", CASES)
def test_each_gives_what_torch_gives(name: str) -> None:
    function, inputs = CASES[name]
    module = Module(function).eval()
    program = decomposed(torch.export.export(module, inputs))
    targets = {node.target for node in program.graph_module.graph.nodes}
    aten = torch.ops.aten
    stays = {
        aten.upsample_bilinear2d.vec,
        aten.topk.default,
        aten.amax.default,
        aten.squeeze.dim,
    }  # in the forms that are written right
    assert not targets & set(TABLE) - stays
    check(program.module()(*inputs), module(*inputs))


def test_what_is_resized_by_a_whole_number_stays() -> None:
    program = torch.export.export(Module(lambda x: functional.interpolate(x, scale_factor=2)), (_normal(1, 2, 4, 4),))
    assert torch.ops.aten.upsample_nearest2d.vec in {node.target for node in decomposed(program).graph.nodes}


def test_attention_of_four_dimensions_and_squeezes_of_one_element_stay() -> None:
    x = _normal(1, 2, 3, 4)
    attention = functional.scaled_dot_product_attention
    program = torch.export.export(Module(lambda x: (attention(x, x, x), x.squeeze(0), x.squeeze((0,)))), (x,))
    assert decomposed(program) is program


def test_what_is_scattered_and_combined() -> None:
    """The exporter writes means as if nothing was combined."""
    places, source = torch.randint(0, 6, (4, 5), generator=GENERATOR), _normal(4, 5)

    def forward(x: Tensor, places: Tensor, source: Tensor) -> tuple[Tensor, ...]:
        return (
            *(x.scatter_reduce(0, places, source, "mean", include_self=flag) for flag in (True, False)),
            *(x.index_reduce(0, places[:, 0], source, kind) for kind in ("mean", "prod", "amax")),
            (x * 9).to(torch.int32).scatter_reduce(0, places, (source * 9).to(torch.int32), "mean"),
            torch.amax(x), torch.amin(x, keepdim=True), x[:1, :1].squeeze(()), torch.amax(x[0, 0]),
        )  # fmt: skip

    inputs = _normal(6, 5), places, source
    library = tvm_neuron.compile(forward, inputs, options=tvm_neuron.BuildOptions(fp32_cast="none"))
    executor = library["default"](tvm.cpu())
    executor.run(**{spec.name: value.numpy() for spec, value in zip(executor.inputs, inputs, strict=True)})
    for number, right in enumerate(forward(*inputs)):
        check(torch.from_numpy(np.array(executor.get_output(number).numpy())), right)


def test_they_are_compiled() -> None:
    def forward(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        resized = functional.interpolate(x[:, None], scale_factor=0.6)
        return torch.lgamma(x), torch.median(x, 1)[0], torch.cummax(x, 1)[0], torch.cdist(x, y), resized

    runs_as_in_torch(forward, _normal(6, 8), _normal(5, 8))


def test_attention_of_any_rank() -> None:
    """Of a row whose keys are all masked torch gives 0."""
    attention = functional.scaled_dot_product_attention
    shown = torch.arange(7) < torch.tensor([7, 3, 0, 1, 5]).unsqueeze(1)

    def forward(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> tuple[Tensor, ...]:
        return (
            attention(q[0], k[0], v[0]),
            attention(q, k, v, is_causal=True),
            attention(q, k, v, mask, scale=0.3),
            attention(q, k, v, shown),
            attention(q.reshape(2, 1, 3, 5, 8), k.reshape(1, 2, 3, 7, 8), v.reshape(1, 2, 3, 7, 4)),
            attention(q.reshape(2, 3, 5, 8), k[0], v[0]),
            attention(q, k[:2], v[:3], enable_gqa=True),
        )

    runs_as_in_torch(forward, _normal(6, 5, 8), _normal(6, 7, 8), _normal(6, 7, 4), _normal(6, 5, 7))


def test_only_dimensions_of_one_element_are_squeezed() -> None:
    def forward(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        return (
            x.squeeze(1) * 2,
            x.squeeze(-2) * 3,
            x.squeeze((0, 1)) + 1,
            x.squeeze((1, 3)) + y,
            x.squeeze() - 1,
            y.squeeze(0),
        )

    runs_as_in_torch(forward, _normal(1, 6, 1, 5), torch.tensor(2.0))


def test_attention_keeps_what_is_no_number() -> None:
    """Beside a mask, too, whose empty rows are 0."""
    attention = functional.scaled_dot_product_attention
    shown, x = torch.ones(5, 5, dtype=torch.bool).tril(-1), _normal(2, 5, 8)
    given = x.clone()
    given[0, 3, 2] = torch.nan
    program = decomposed(torch.export.export(Module(lambda q, x: attention(q, x, x, shown)), (given, x)))
    wanted = attention(given, x, x, shown)
    assert wanted[0, 3].isnan().all()
    check(program.module()(given, x), wanted)


def test_forms_are_told_however_arguments_are_given() -> None:
    x = _normal(3, 5, 8)
    function = functional.scaled_dot_product_attention
    for forward in (lambda x: function(query=x, key=x, value=x), lambda x: x.squeeze(dim=1)):
        program = torch.export.export(Module(forward), (x,))
        assert decomposed(program) is not program


def runs_as_in_torch(forward: Callable[..., tuple[Tensor, ...]], *inputs: Tensor) -> None:
    library = tvm_neuron.compile(forward, inputs, options=tvm_neuron.BuildOptions(fp32_cast="none"))
    executor = library["default"](tvm.cpu())
    for spec, value in zip(executor.inputs, inputs, strict=True):
        executor.set_input(spec.name, value.numpy())
    executor.run()
    for number, right in enumerate(forward(*inputs)):
        found = executor.get_output(number).numpy()
        np.testing.assert_allclose(found, right.numpy(), rtol=1e-4, atol=1e-4)  # functions of ACT, good to 1e-5
