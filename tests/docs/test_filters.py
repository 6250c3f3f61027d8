"""What the benchmark of filters draws is what its text says, and compiles."""

import onnx

import tvm_neuron
from benchmarks.filters import WINDOWS, draw


def test_draws_the_same_for_a_seed() -> None:
    assert draw(20, 3) == draw(20, 3) != draw(20, 4)


def test_few_channels_of_all_windows() -> None:
    cases = draw(200, 1)
    assert {case.window for case in cases} == set(WINDOWS)
    assert max(max(case.channels, case.outputs) for case in cases) == 16
    assert 0.2 < sum(case.groups > 1 for case in cases) / len(cases) < 0.6
    for case in cases[:20]:
        onnx.checker.check_model(case.model(), full_check=True)


def test_one_compiles() -> None:
    case = min(draw(20, 2), key=lambda case: case.rows * case.columns)
    assert tvm_neuron.report(tvm_neuron.compile(case.model(), target="neuron/inf2")).latency_us > 0
