"""One network over several cores: the bits of one core, weights that stay, and numbers of the report that agree."""

import contextlib
import io
import json
import math
import re
from itertools import pairwise
from typing import Any

import numpy as np
import onnx
import pytest
import tvm
from onnx import helper, numpy_helper
from rich.console import Console

from tests.codegen.random_networks import RandomNetwork
from tests.codegen.transformers import Encoder
from tests.docs.markdown import blocks
from tests.onnx_models import Arrays
from tests.stages.networks import images, small_network
from tests.stages.test_small_memory import shrunk
from tvm_neuron import neff, relay, runtime
from tvm_neuron.build import BuildOptions
from tvm_neuron.cli.main import main
from tvm_neuron.codegen import function
from tvm_neuron.codegen.emit.stay_in_psum import STAY_IN_PSUM
from tvm_neuron.codegen.stage import Stage
from tvm_neuron.codegen.steps import without
from tvm_neuron.errors import NeffError, OptionError
from tvm_neuron.hw import load_device, load_instance
from tvm_neuron.isa import DmaCopy, DramTile
from tvm_neuron.isa.dtypes import DTYPES
from tvm_neuron.neff import Pipeline
from tvm_neuron.neff.container import pack, unpack
from tvm_neuron.neff.tables import decode_json, encode_json
from tvm_neuron.profile import make_report, run_of, trace_file
from tvm_neuron.profile.tables import render
from tvm_neuron.program.program import walk
from tvm_neuron.sim import Cores


def compiled(model: onnx.ModelProto, target: Any, cores: int, instance: str = "") -> Pipeline:
    mod, params = relay.frontend.from_onnx(model)
    options = BuildOptions(pipeline_cores=cores, instance=instance)
    library = relay.build(mod, target=tvm.target.Target(target), params=params, options=options)
    (data,) = runtime.neffs(library).values()
    return neff.read_pipeline(data)


def bits(pipeline: Pipeline, inputs: Arrays, mode: str = "nest") -> list[bytes]:
    cores = Cores(pipeline)
    given = {name: array.astype(DTYPES[cores.inputs[name].dtype]) for name, array in inputs.items()}
    runs = [cores.run(given, mode) for _ in range(2)]  # the second finds what the first left in memory
    assert [a.tobytes() for a in runs[0].values()] == [a.tobytes() for a in runs[1].values()]
    return [array.tobytes() for array in runs[0].values()]


@pytest.mark.slow
@pytest.mark.parametrize("chip", ["inf1", "inf2"])
def test_a_network_on_one_to_four_cores(chip: str) -> None:
    model = small_network()
    one = compiled(model, f"neuron/{chip}", 1)
    wanted = bits(one, images())
    for cores in (2, 3, 4):
        several = compiled(model, f"neuron/{chip}", cores)
        assert sum(several.replicas) == cores
        assert several.inputs == one.inputs
        assert several.outputs == one.outputs
        for mode in ("nest", "strict"):
            assert bits(several, images(), mode) == wanted, mode


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_random_networks(seed: int) -> None:
    network = RandomNetwork(seed, operators=7)
    target = f"neuron/inf{1 + seed % 2}"
    wanted = bits(compiled(network.model(), target, 1), network.inputs())
    for cores in (2, 3):
        assert bits(compiled(network.model(), target, cores), network.inputs(), "strict") == wanted


@pytest.mark.slow
@pytest.mark.parametrize("way", [0, 1])
def test_an_encoder(way: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In each layout: which is the quickest depends on the cores, and each adds up in its own order."""
    every = function.kernels_by_layout
    monkeypatch.setattr(function, "kernels_by_layout", lambda *args: [every(*args)[way]])
    encoder = Encoder(hidden=64, heads=2, rows=32, layers=2)
    model, inputs = encoder.model(), encoder.inputs()
    wanted = bits(compiled(model, "neuron/inf2", 1), inputs)
    assert bits(compiled(model, "neuron/inf2", 4), inputs) == wanted


@pytest.mark.slow
def test_a_small_memory_streams_what_does_not_fit(tmp_path: Any) -> None:
    model = small_network(channels=256)
    target = shrunk(tmp_path, "inf1", 18)
    one = compiled(model, target, 1)
    two = compiled(model, target, 2, "inf1.xlarge")
    assert bits(two, images()) == bits(one, images())
    assert any(core.memory["weights_streamed"] for core in two.cores)
    assert any(core.memory["weights_kept"] for core in two.cores)


@pytest.mark.parametrize("through", [False, True])
def test_many_channels_cross_as_sbuf_has_them(monkeypatch: pytest.MonkeyPatch, through: bool) -> None:
    """Tensors that a plan keeps in DRAM are there in another order than that in which they cross."""
    usual, rng = Stage.in_dram, np.random.default_rng(0)
    weights = [rng.standard_normal((256, 256, 1, 1), dtype=np.float32) / 16 for _ in range(4)]
    nodes = [helper.make_node("Conv", [f"h{n}", f"w{n}"], [f"h{n + 1}"], name=f"conv{n}") for n in range(4)]
    ends = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 256, 5, 6]) for name in ("h0", "h4")]
    arrays = [numpy_helper.from_array(array, f"w{n}") for n, array in enumerate(weights)]
    model = helper.make_model(
        helper.make_graph(nodes, "tower", ends[:1], ends[1:], arrays),
        opset_imports=[helper.make_opsetid("", 18)],
        ir_version=10,
    )
    inputs = {"h0": rng.standard_normal((1, 256, 5, 6), dtype=np.float32)}
    if through:
        monkeypatch.setattr(Stage, "in_dram", lambda stage: usual(stage) | stage.images)
    several = compiled(model, "neuron/inf1", 4)
    crossing = {info for core in several.cores for info in core.outputs} - set(several.outputs)
    assert any(info.shape[0] == 128 and len(info.shape) == 2 for info in crossing)
    names = {info.name for info in crossing if len(info.shape) == 2}
    copies = [(c, i) for c in several.cores for _, i in walk(c.program.body) if isinstance(i, DmaCopy)]
    through_dram = [
        copy
        for core, copy in copies
        if isinstance(copy.target, DramTile) and isinstance(copy.source, DramTile)
        if {core.program.tensors[side.tensor].name for side in (copy.target, copy.source)} & names
    ]
    assert bool(through_dram) == through
    wanted = bits(compiled(model, "neuron/inf1", 1), inputs)
    for mode in ("nest", "strict"):
        assert bits(several, inputs, mode) == wanted


def test_a_file_of_several_cores_comes_back() -> None:
    pipeline = compiled(small_network(), "neuron/inf1", 3)
    data = b"".join(neff.pipeline_pieces(pipeline))
    again = neff.read_pipeline(data)
    assert again == pipeline
    programs = [neff.read(core) for core in neff.core_files(data)]
    replicas = zip(pipeline.cores, pipeline.replicas, strict=True)
    assert programs == [core for core, count in replicas for _ in range(count)]
    assert len(programs) == 3
    with pytest.raises(NeffError, match="holds the programs of several cores, and this takes the program of one"):
        neff.read(data)


@pytest.mark.parametrize(
    ("replicas", "message"),
    [
        ([1], r"tells the cores of 1 programs; the file has [23]"),
        ([0] * 3, "replicas must be a list of numbers from 1 to 1024"),
        ([True] * 3, "replicas must be a list of numbers"),
        (3, "replicas must be a list of numbers"),
        (None, "must name the model, its inputs, outputs and replicas"),
    ],
)
def test_a_file_that_tells_nonsense_of_its_cores(replicas: Any, message: str) -> None:
    data = b"".join(neff.pipeline_pieces(compiled(small_network(), "neuron/inf1", 3)))
    header, sections = unpack(data)
    model = decode_json(sections["pipeline"], "pipeline")
    model = {k: v for k, v in model.items() if k != "replicas"} | ({} if replicas is None else {"replicas": replicas})
    changed: dict[str, Any] = {**sections, "pipeline": [encode_json(model)]}
    changed = {name: [part] if not isinstance(part, list) else part for name, part in changed.items()}
    broken = b"".join(pack(changed, header.compiler_version, needed=changed))
    for take in (neff.read_pipeline, neff.core_files):
        with pytest.raises(NeffError, match=message):
            take(broken)


def test_the_report_of_a_pipeline() -> None:
    model = small_network(channels=64)
    one = make_report((), [compiled(model, "neuron/inf1", 1)])
    report = make_report((), [compiled(model, "neuron/inf1", 6)])
    assert one.pipelines == ()
    (use,) = report.pipelines
    assert use.is_cached
    assert [stage.chip for stage in use.stages] == [stage.core // 4 for stage in use.stages]
    assert use.cores == sum(stage.replicas for stage in use.stages) == 6
    assert use.link_us > load_device("inf1").dma_start_ns / 1e3
    assert use.latency_us == pytest.approx(sum(stage.latency_us for stage in use.stages) + use.link_us)
    assert use.interval_us >= max(stage.latency_us / stage.replicas for stage in use.stages)
    assert max(stage.share for stage in use.stages) <= 1
    assert use.inputs_per_second > 1e6 / one.latency_us
    assert report.latency_us == pytest.approx(use.latency_us)
    assert report.interval_us == pytest.approx(use.interval_us)
    assert one.interval_us == one.latency_us
    (said,) = json.loads(report.to_json())["pipelines"]
    assert (said["cores"], said["is_cached"]) == (6, True)
    assert said["inputs_per_second"] == pytest.approx(1e6 / report.interval_us)
    assert len(said["stages"]) == len(use.stages)
    assert use.stages[-1].sent_bytes == 0
    assert all(stage.sent_bytes for stage in use.stages[:-1])
    assert use.load_us == max(stage.load_us for stage in use.stages) > 0


@pytest.mark.parametrize(
    ("cores", "instance", "message"),
    [
        (5, "inf1.xlarge", "pipeline_cores is 5; inf1.xlarge has 4 NeuronCores: ask for at most that many, or name"),
        (60, "", r"pipeline_cores is 60; the model can be cut into at most \d+ stages, since cuts"),
    ],
)
def test_counts_that_can_not_work(cores: int, instance: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        compiled(small_network(), "neuron/inf1", cores, instance)


def test_no_cores_at_all() -> None:
    with pytest.raises(OptionError, match="pipeline_cores is 0; it must be at least 1"):
        BuildOptions(pipeline_cores=0)


@pytest.mark.slow
def test_the_library_runs_it() -> None:
    mod, params = relay.frontend.from_onnx(small_network())
    outputs = []
    for cores in (1, 3):
        library = relay.build(mod, target="neuron", params=params, options=BuildOptions(pipeline_cores=cores))
        executor = library["default"](tvm.cpu())
        executor.run(**images())
        outputs.append(executor.get_output(0).numpy())
    np.testing.assert_array_equal(*outputs)


def test_every_instance_holds_cores() -> None:
    assert load_instance("", load_device("inf1")).cores == 64
    assert load_instance("inf2.24xlarge", load_device("inf2")).cores == 12


def test_the_example_of_the_documentation(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(small_network(), tmp_path / "model.onnx")
    (block,) = [block for block in blocks("docs/pipeline.md") if block.mark == "python"]
    with contextlib.chdir(tmp_path):
        exec(compile(block.text, "docs/pipeline.md", "exec"), {"__name__": "__main__"})
    said = capsys.readouterr().out
    assert re.search(r"inputs/s, [\d.]+ us each, limited by core \d\ncore 0: .*\ncore 1: ", said)


def test_the_table_of_the_report_says_how_many_cores_would_hold_all_weights(tmp_path: Any) -> None:
    pipeline = compiled(small_network(channels=256), shrunk(tmp_path, "inf1", 18), 2, "inf1.xlarge")
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(render(make_report((), [pipeline])))
    said = " ".join(console.export_text().split())
    assert re.search(r"weights partly cached \(about \d+ cores would hold all\)", said)
    assert "Pipeline neuron_0 on inf1.xlarge: " in said


@pytest.mark.slow
def test_on_the_command_line(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    model, out = tmp_path / "model.onnx", tmp_path / "model.neff"
    onnx.save(small_network(), model)
    np.savez(tmp_path / "x.npz", **images())
    with without(STAY_IN_PSUM.name, "choose_routes"):  # with these, two programs for three cores are quicker
        assert main(["compile", str(model), "--num-neuroncores", "3", "--output", str(out), "--cache", "off"]) == 0
    assert main(["run", str(out), "--input", str(tmp_path / "x.npz"), "--output", str(tmp_path / "y.npz")]) == 0
    executor = relay.build(*relay.frontend.from_onnx(model)[:1], target="neuron")["default"](tvm.cpu())
    executor.run(**images())
    np.testing.assert_array_equal(np.load(tmp_path / "y.npz")["y"], executor.get_output(0).numpy())
    capsys.readouterr()
    assert main(["report", str(out)]) == 0
    assert "inputs a second" in capsys.readouterr().out
    assert main(["info", str(out), "--core", "2"]) == 0
    assert "neuron_0.2" in capsys.readouterr().out  # the program that has core 2
    assert main(["info", str(out), "--core", "3"]) == 1
    assert "has no core 3: its cores are 0 to 2" in capsys.readouterr().err
    assert main(["report", str(out), "--timeline", str(tmp_path / "t.json")]) == 0
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]


def test_the_timeline_of_a_pipeline() -> None:
    """One input through all programs: its latency is the report's, and no program begins before its inputs come."""
    pipeline = compiled(small_network(channels=64), "neuron/inf1", 6)
    (use,) = make_report((), [pipeline]).pipelines
    rows = json.loads(trace_file(run_of([pipeline], with_host=False), "t.json"))["traceEvents"]
    names = {row["pid"]: row["args"]["name"] for row in rows if row["name"] == "process_name"}
    cores = [f"{pipeline.name}, core {s.core + s.replicas - 1}" for s in use.stages]
    assert list(names.values()) == [*cores, "links between chips"]
    spans: dict[str, tuple[float, float]] = {}
    for row in rows:
        if row["ph"] == "X":
            low, high = spans.get(names[row["pid"]], (math.inf, 0.0))
            spans[names[row["pid"]]] = (min(low, row["ts"]), max(high, row["ts"] + row["dur"]))
    assert max(high for _, high in spans.values()) == pytest.approx(use.latency_us)
    low, high = spans.pop("links between chips")
    assert high - low == pytest.approx(use.link_us)  # there is one, from the first chip to the second
    stages = list(spans.values())
    assert all(here[1] <= there[0] + 1e-6 for here, there in pairwise(stages))
    assert sum(here[1] <= low + 1e-6 and high <= there[0] + 1e-6 for here, there in pairwise(stages)) == 1
