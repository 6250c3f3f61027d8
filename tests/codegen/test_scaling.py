"""Compiling grows linearly with the number of layers, in work counted instead of timed; equal layers are read once."""

import sys
from itertools import pairwise
from types import FrameType
from typing import Any

import pytest

from tests.codegen.transformers import Encoder
from tests.models.zoo.sequences import lstm_seq2seq
from tvm_neuron import relay
from tvm_neuron.codegen import call_blocks, function
from tvm_neuron.codegen.steps import without


def calls_of_a_build(model: Any) -> int:
    """How many Python functions a build calls."""
    mod, params = relay.frontend.from_onnx(model)
    count = 0

    def called(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        relay.build(mod, params=params)
    finally:
        sys.setprofile(before)
    return count


def encoder(layers: int) -> Any:
    return Encoder(hidden=64, heads=2, rows=16, layers=layers).model()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "sizes"), [(encoder, (3, 4, 6)), (lambda steps: lstm_seq2seq(steps, 32, 50), (1, 2, 4))]
)
def test_twice_the_layers_take_twice_the_work(make: Any, sizes: tuple[int, ...]) -> None:
    with without("add_after_contractions"):  # with it, three layers have a way more to compare than four
        calls_of_a_build(make(1))  # what is done once for a process
        counts = [calls_of_a_build(make(size)) for size in sizes]
    added = [more - fewer for fewer, more in pairwise(counts)]
    for before, after in pairwise(added):
        assert after < 2.3 * before, f"{counts} calls for {sizes} layers"


@pytest.mark.slow
def test_equal_layers_are_scheduled_and_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def counted(module: Any, name: str) -> list[None]:
        real, calls = getattr(module, name), list[None]()

        def call(*args: Any) -> Any:
            calls.append(None)
            return real(*args)

        monkeypatch.setattr(module, name, call)
        return calls

    monkeypatch.setattr(call_blocks, "_templates", {})
    reads, verdicts = counted(call_blocks, "_read"), counted(function, "verdict")
    found = []
    for layers in (2, 6):
        call_blocks._templates.clear()
        reads.clear()
        verdicts.clear()
        mod, params = relay.frontend.from_onnx(encoder(layers))
        relay.build(mod, params=params)
        found.append((len(reads), len(verdicts)))
    assert found[0] == found[1]
    assert all(10 < count < 40 for count in found[0])
