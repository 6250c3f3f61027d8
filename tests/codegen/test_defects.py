"""A defect of the compiler stops no build: what is at fault runs on the CPU, as is told, with onnxruntime's results."""

import re
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import tvm
from onnx import helper

import tvm_neuron
from tests.onnx_models import make_model, reference
from tvm_neuron import relay
from tvm_neuron.build import BuildOptions, placed
from tvm_neuron.codegen import capability, choose, compile_stage, emit_stage, function, legalise, simplify, worth
from tvm_neuron.codegen.share import multiplications, subgraphs
from tvm_neuron.errors import (
    DefectWarning,
    InternalError,
    OptionError,
    PlacementError,
    PlacementWarning,
    ProgramError,
    UnschedulableError,
)
from tvm_neuron.relay import graph_executor

RNG = np.random.default_rng(20)
CONVS = 4
Plant = Callable[[pytest.MonkeyPatch], None]

ROUNDED_ROWS = onnx.parser.parse_model(
    """<ir_version: 10, opset_import: ["": 19]> g (float[3, 7] x) => (float[3, 7] y)
    <float[7] scale = {9, 8, 7, 6, 5, 4, 3}, float[7] bias = {1, 2, 3, 4, 5, 6, 7}, float half = {0.5},
     float least = {0}, float most = {9}>
    { normal = LayerNormalization(x, scale, bias)  whole = Round(normal)  near = Clip(whole, least, most)
      powers = Exp(near)  y = Mul(powers, half) }"""
)

shown = pytest.mark.filterwarnings("default::tvm_neuron.errors.DefectWarning")


@pytest.fixture(scope="module")
def model() -> onnx.ModelProto:
    """y = conv3(...relu(conv0(x))), a ReLU behind each."""
    weights, nodes = {}, []
    for i in range(CONVS):
        weights[f"w{i}"] = (0.1 * RNG.standard_normal((8, 8, 3, 3))).astype(np.float32)
        source, result = "x" if i == 0 else f"r{i - 1}", "y" if i == CONVS - 1 else f"r{i}"
        nodes.append(helper.make_node("Conv", [source, f"w{i}"], [f"c{i}"], f"conv{i}", pads=[1, 1, 1, 1]))
        nodes.append(helper.make_node("Relu", [f"c{i}"], [result], f"relu{i}"))
    return make_model(nodes, {"x": [1, 8, 6, 6]}, ["y"], weights)


def build(model: onnx.ModelProto, **options: Any) -> Any:
    mod, params = relay.frontend.from_onnx(model)
    return relay.build(mod, params=params, options=BuildOptions(**options))


def check_results(model: onnx.ModelProto, library: Any) -> None:
    x = RNG.standard_normal((1, 8, 6, 6)).astype(np.float32)
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    executor = graph_executor.GraphModule(library["default"]())
    executor.run(x=x)
    error = np.linalg.norm(executor.get_output(0).numpy() - expected) / np.linalg.norm(expected)
    assert error < CONVS * 2**-8  # each layer rounds both operands to bf16, each by up to 2^-9


def in_emitting(patch: pytest.MonkeyPatch) -> None:
    (kind,) = (kind for kind in emit_stage._EMIT if kind.__name__ == "Contraction")
    emit = emit_stage._EMIT[kind]

    def broken(emitter: Any, kernel: Any) -> None:
        assert kernel.origins[0].name != "conv2", "no such kernel"
        emit(emitter, kernel)

    patch.setitem(emit_stage._EMIT, kind, broken)


def in_legalising(patch: pytest.MonkeyPatch) -> None:
    blocks = legalise.call_blocks

    def broken(call: Any, arguments: Any, name: str, origin: Any) -> Any:
        if origin.name == "conv2":
            raise KeyError("no such table")
        return blocks(call, arguments, name, origin)

    patch.setattr(legalise, "call_blocks", broken)


def in_checking(patch: pytest.MonkeyPatch) -> None:
    """A program that breaks a rule: a tile of conv2 starts where none may."""
    verify = compile_stage.verify

    def broken(program: Any, device: Any) -> None:
        if any(origin.name == "conv2" for origin in program.origins):
            raise ProgramError("it writes the same bytes twice")  # as if it named no operator
        verify(program, device)

    patch.setattr(compile_stage, "verify", broken)


def in_synchronising(patch: pytest.MonkeyPatch) -> None:
    synchronise = choose.synchronise

    def broken(program: Any, device: Any) -> Any:
        if any(origin.name == "conv2" for origin in program.origins):
            np.empty(1 << 50, np.uint8)
        return synchronise(program, device)

    patch.setattr(choose, "synchronise", broken)


PLANTED = [
    (in_emitting, "NCC512", "conv2: AssertionError: no such kernel"),
    (in_legalising, "NCC510", "conv2: KeyError: 'no such table'"),
    (in_checking, "NCC511", "ProgramError: it writes the same bytes twice"),
    (in_synchronising, "NCC513", "Unable to allocate 1.00 PiB"),
]


@shown
@pytest.mark.parametrize(("plant", "code", "message"), PLANTED)
def test_the_operator_at_fault_runs_on_the_cpu(
    plant: Plant, code: str, message: str, model: onnx.ModelProto, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NEURON_CC_BUNDLES", str(tmp_path / "bundles"))
    plant(monkeypatch)
    with pytest.warns(DefectWarning, match=f"on the CPU: conv2: defect of the compiler, {code}.*please report") as told:
        library = build(model)
    assert len(told) == 1
    check_results(model, library)
    report = tvm_neuron.report(library)
    (row,) = report.placed("cpu")
    (bundle,) = (tmp_path / "bundles").iterdir()
    assert row.name == "conv2"
    assert row.reason.startswith(f"defect of the compiler, {code}, bundle written to {bundle}: neuron_0")
    assert message in row.reason
    assert len(report.placed("neuroncore")) == 2 * CONVS - 1
    with zipfile.ZipFile(bundle) as held:
        assert message.partition(": ")[2] in held.read("traceback.txt").decode()
        assert "nn.conv2d" in held.read("part.txt").decode()
        assert b"apache-tvm" in held.read("facts.json")


def test_many_refused_beside_their_neighbours_leave_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than failures are counted: of 24 layers those that a rule refuses run on the CPU, and they alone."""
    kernels_of = simplify.kernels_of

    def picky(block: Any, *others: Any) -> Any:
        if block.origin.name in {f"conv{number}" for number in range(12)}:
            raise UnschedulableError(f"{block.origin}: no room", block.origin.name, "no room")
        return kernels_of(block, *others)

    monkeypatch.setattr(simplify, "kernels_of", picky)
    weights = {f"w{i}": (0.2 * RNG.standard_normal((8, 8, 3, 3))).astype(np.float32) for i in range(24)}
    names = ["x", *(f"c{i}" for i in range(23)), "y"]
    nodes = [
        helper.make_node("Conv", [names[i], f"w{i}"], [names[i + 1]], f"conv{i}", pads=[1, 1, 1, 1]) for i in range(24)
    ]
    report = tvm_neuron.report(build(make_model(nodes, {"x": [1, 8, 6, 6]}, ["y"], weights)))
    assert {row.name: row.reason for row in report.placed("cpu")} == {
        f"conv{number}": "beside its neighbours, no room" for number in range(12)
    }


@pytest.mark.filterwarnings("ignore::tvm_neuron.errors.PlacementWarning")
def test_a_part_with_a_kernel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """TVM's importer makes a kernel of a Pad that cuts, which TVM can't print where it is part of a function."""

    def broken(program: Any, device: Any) -> None:
        raise ProgramError("no such program")

    monkeypatch.setenv("NEURON_CC_BUNDLES", str(tmp_path))
    monkeypatch.setattr(compile_stage, "verify", broken)
    weights = {"pads": np.array([-1, 0, 0, 2]), "fill": np.float32(6.25)}
    model = make_model([helper.make_node("Pad", ["x", "pads", "fill"], ["y"], "pad0")], {"x": (3, 4)}, ["y"], weights)
    with pytest.warns(DefectWarning, match="on the CPU: pad0: defect of the compiler, NCC511"):
        library = build(model)
    executor = graph_executor.GraphModule(library["default"]())
    x = RNG.standard_normal((3, 4)).astype(np.float32)
    executor.run(x=x)
    np.testing.assert_array_equal(executor.get_output(0).numpy(), np.pad(x[1:], ((0, 0), (0, 2)), constant_values=6.25))
    (bundle,) = tmp_path.iterdir()
    with zipfile.ZipFile(bundle) as held:
        part = held.read("part.txt").decode()
    assert "def pad(" in part
    assert "6.25" not in part


@pytest.mark.parametrize(("plant", "code", "message"), PLANTED)
def test_must_compile_makes_it_an_error(
    plant: Plant, code: str, message: str, model: onnx.ModelProto, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises(InternalError, match=f"{re.escape(message)}.*conv2.*; bundle written to .*{code}") as caught:
        build(model, must_compile=True)
    assert caught.value.code == code
    assert Path(caught.value.bundle).is_file()


def test_the_warning_is_an_error_in_tests(model: onnx.ModelProto, monkeypatch: pytest.MonkeyPatch) -> None:
    in_emitting(monkeypatch)
    with pytest.raises(DefectWarning):
        build(model)


@shown
def test_a_question_that_fails(model: onnx.ModelProto, monkeypatch: pytest.MonkeyPatch) -> None:
    make = capability.make_kernels

    def broken(graph: Any, *others: Any, **more: Any) -> Any:
        if any(block.combine for block in graph.blocks):
            raise IndexError("no such rule")
        return make(graph, *others, **more)

    monkeypatch.setattr(capability, "make_kernels", broken)
    with pytest.warns(DefectWarning, match="conv0 .Conv.: IndexError: no such rule"):
        library = build(model, minimum_segment_size=1)
    check_results(model, library)
    assert {row.name for row in tvm_neuron.report(library).placed("cpu")} == {f"conv{i}" for i in range(CONVS)}
    with pytest.raises(InternalError, match=r"no such rule; bundle written to [^;]*$"):
        build(model, must_compile=True)


@pytest.mark.slow
@shown
@pytest.mark.parametrize("where", ["every part", "the cut"])
def test_where_all_fails_all_runs_on_the_cpu(
    where: str, model: onnx.ModelProto, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("nothing works")

    if where == "every part":
        monkeypatch.setattr(compile_stage, "verify", broken)
    else:
        monkeypatch.setattr(sys.modules["tvm_neuron.partition.partition"], "_cut", broken)
    with pytest.warns(DefectWarning, match="nothing works") as told:
        library = build(model)
    assert len([each for each in told if each.category is DefectWarning]) <= 9
    check_results(model, library)
    assert len(tvm_neuron.report(library).placed("cpu")) == 2 * CONVS


@pytest.mark.slow
@shown
def test_a_trial_that_fails(model: onnx.ModelProto, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is beside an operator of the CPU is compiled on trial, to weigh it."""
    monkeypatch.setattr(worth, "CLEARLY", float("inf"))

    def broken(*_: Any) -> Any:
        raise AssertionError("no time")

    monkeypatch.setattr(worth, "time_program", broken)
    weighed = helper.make_node("NonZero", ["y"], ["places"], "find")
    longer = onnx.ModelProto()
    longer.CopyFrom(model)
    longer.graph.node.append(weighed)
    longer.graph.node.insert(0, helper.make_node("Elu", ["x"], ["e"], "elu"))
    longer.graph.node[1].input[0] = "e"
    with pytest.warns(DefectWarning, match="a part on trial: AssertionError: no time"):
        library = build(longer, on_cpu=("elu",))
    assert "elu" in {row.name for row in tvm_neuron.report(library).placed("cpu")}
    check_results(longer, library)


@shown
@pytest.mark.parametrize("step", ["schedule_kernels", "products_in_turn"])
def test_kernels_of_the_cpu_that_fail_run_one_by_one(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that fails when kernels are made, and one without which TVM fails when they are linked."""

    @tvm.transform.module_pass(opt_level=0, name="Broken")
    def broken(mod: tvm.IRModule, _context: tvm.transform.PassContext) -> tvm.IRModule:
        if step == "schedule_kernels":
            raise AssertionError("no such loop")
        return mod

    monkeypatch.setattr(sys.modules["tvm_neuron.codegen.cpu.lower"], step, broken)
    said = "no such loop" if step == "schedule_kernels" else "Let cannot bind the same var"
    with pytest.warns(DefectWarning, match=f"one by one and take longer: defect of the compiler, NCC51.*{said}"):
        library = build(ROUNDED_ROWS, on_cpu=("*",))
    x = RNG.standard_normal((3, 7)).astype(np.float32)
    executor = graph_executor.GraphModule(library["default"]())
    executor.run(x=x)
    np.testing.assert_allclose(executor.get_output(0).numpy(), reference(ROUNDED_ROWS, {"x": x})[0], rtol=1e-6)


def test_kernels_of_the_cpu_that_fail_either_way(model: onnx.ModelProto, monkeypatch: pytest.MonkeyPatch) -> None:
    @tvm.transform.module_pass(opt_level=0, name="Broken")
    def broken(_mod: tvm.IRModule, _context: tvm.transform.PassContext) -> tvm.IRModule:
        raise AssertionError("no such name")

    monkeypatch.setattr(sys.modules["tvm_neuron.codegen.cpu.lower"], "keep_nan", broken)
    with pytest.raises(InternalError, match="no such name; bundle written to "):
        build(model)


@shown
def test_a_tuning_that_fails_is_left_out(model: onnx.ModelProto, monkeypatch: pytest.MonkeyPatch) -> None:
    total, times = function.total_ps, []

    def broken(pipeline: Any) -> int:
        times.append(1)
        assert len(times) != 2, "no clock"
        return total(pipeline)

    monkeypatch.setattr(function, "total_ps", broken)
    with pytest.warns(DefectWarning, match="not taken for neuron_0: .* = .*: defect of the compiler, NCC512"):
        library = build(model, optlevel=3)
    assert not tvm_neuron.report(library).placed("cpu")
    check_results(model, library)


@shown
def test_a_bundle_that_cannot_be_written_hides_nothing(
    model: onnx.ModelProto, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NEURON_CC_BUNDLES", str(tmp_path / "file" / "folder"))
    in_emitting(monkeypatch)
    with pytest.warns(DefectWarning, match="NCC512, no bundle could be written: .*: neuron_0, conv2: AssertionError"):
        build(model)


def test_what_users_do_wrong_is_no_defect(model: onnx.ModelProto) -> None:
    with pytest.raises(OptionError, match="pipeline_cores is 64"):
        build(model, pipeline_cores=64)
    with pytest.raises(PlacementError, match="kept on the CPU"):
        build(model, must_compile=True, on_cpu=("relu1",))


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_is_no_defect(
    kind: type[BaseException], model: onnx.ModelProto, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any) -> None:
        raise kind

    monkeypatch.setattr(compile_stage, "verify", interrupted)
    with pytest.raises(kind):
        build(model)


@pytest.mark.filterwarnings("error::tvm_neuron.errors.PlacementWarning")
def test_little_on_the_core_warns(model: onnx.ModelProto) -> None:
    with pytest.warns(PlacementWarning, match="nothing of the model runs on the NeuronCore: the placement has"):
        build(model, on_cpu=("?*",))  # "*" asks for it, and is not warned of
    with pytest.warns(PlacementWarning, match="only 25% of the model's multiplications run on the NeuronCore"):
        build(model, on_cpu=("conv[012]",))
    build(model, on_cpu=("conv[01]",))


def test_multiplications(model: onnx.ModelProto) -> None:
    parts = placed(*relay.frontend.from_onnx(model), BuildOptions(on_cpu=("conv0",)))
    found = [multiplications(parts.mod["main"]), sum(map(multiplications, subgraphs(parts.mod)))]
    each = 8 * 8 * 3 * 3 * 6 * 6  # those with padding included
    assert found == [each, 3 * each]
