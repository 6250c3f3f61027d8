"""The page of a report: what it says in text; tests/browser opens it."""

import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from tests.neff.samples import add_relu
from tests.onnx_models import make_model, mixed_model
from tvm_neuron import relay, report
from tvm_neuron.cli.main import main
from tvm_neuron.errors import OptionError
from tvm_neuron.neff import Pipeline, Placement, save
from tvm_neuron.profile import Report, make_report
from tvm_neuron.profile.page.facts import Moved, causes, moved, operators, spilled
from tvm_neuron.profile.page.findings import findings
from tvm_neuron.profile.run import run_of
from tvm_neuron.program import parse_program

bokeh = pytest.importorskip("bokeh")  # in an environment older than the extra


@pytest.fixture(scope="module")
def mixed() -> Report:
    """Two programs, and a CPU part between them."""
    mod, params = relay.frontend.from_onnx(mixed_model())
    return report(relay.build(mod, target="neuron", params=params))


@pytest.mark.slow
def test_all_sections_of_a_library(mixed: Report) -> None:
    text = mixed.to_html("my <model>")
    assert "<title>my &lt;model&gt;</title>" in text
    for part in ("What to look at first", "From end to end", "Operators", "In time: neuron_0", "In time: neuron_1"):
        assert f"<h2>{part}</h2>" in text
    for part in ("DRAM traffic", "Memory in total", "Where operators run", "cpu:", "not modelled"):
        assert part in text
    for row in mixed.placement:
        assert f"<td>{row.name}</td>" in text
    for row in mixed.layers:
        assert re.search(rf'<td>{row.name}</td><td>{row.op}</td><td class="n" data-v="{row.latency_us!r}">', text)
    markup = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert not re.search(r'(src|href)="(?!data:)', markup)  # nothing is loaded from elsewhere; see also tests/browser
    assert not re.search(r"<script[^>]*src=", text)
    assert mixed._repr_html_().startswith('<iframe srcdoc="&lt;!DOCTYPE html&gt;')


def test_findings_are_ranked_and_say_what_they_gain(mixed: Report) -> None:
    run = run_of(mixed.parts)
    layers = [row for core in run.cores for row in operators(core, [1.0] * len(core.recording.neff.program.origins))]
    found = findings(mixed.to_dict(), run.cores, moved(run.cores), layers)
    assert 2 <= len(found) <= 4
    gains = [row.gain_us for row in found]
    assert gains == sorted(gains, reverse=True)
    assert gains[-1] > 0


def test_a_tensor_that_is_loaded_again_is_found() -> None:
    """As in the sentence that asked for the page: an input that moves most of the bytes, since it is loaded often."""
    row = Moved("p", "x", "input", 1_000_000, 24_000_000, 0, ("Conv_3",), (), 500.0)
    told = {"dram_bytes": 27_300_000, "latency_us": 800.0, "engines": [], "placement": [], "transfers": []}
    cores = run_of([Pipeline.of(add_relu())]).cores
    (found,) = findings(told, cores, [row], [])
    assert found.gain_us == 500.0
    assert found.text.startswith("Conv_3 loads input 'x' 24.0 times (24.00 MB, 88% of the DRAM bytes)")
    spilled = replace(row, kind="scratch", name="s", read=10, written=10)
    (found,) = findings(told, cores, [spilled], [])
    assert found.text.startswith("1 tensor waits in DRAM")


def test_traffic_by_cause_is_all_traffic() -> None:
    """Of an operator whose operands do not stay in SBUF."""
    weights = {"w": np.random.default_rng(0).standard_normal((64, 64)).astype("float32")}
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], "product")]
    mod, params = relay.frontend.from_onnx(make_model(nodes, {"x": [8, 64]}, ["y"], weights))
    made = report(relay.build(mod, target="neuron", params=params))
    tensors = moved(run_of(made.parts).cores)
    rows = causes(tensors, 1_000_000)
    assert sum(row.bytes for row in rows) == made.dram_bytes
    assert sum(row.us for row in rows) == pytest.approx(made.dram_bytes)
    assert {row.name for row in tensors if row.readers == ("product",)} >= {"x"}


SPILLS = """
tensor 0 input "x" 4x8 float32
tensor 1 scratch "waits" 4x8 float32
tensor 2 weight "w" 4x8 float32
tensor 3 output "y" 4x8 float32
origin 0 Relu "relu"
dma_copy target=sbuf.float32{p=0;n=4;at=0;dims=1*8} source=dram.float32{t=0;at=0;dims=8*4,1*8} ring=0 origin=0
dma_copy target=dram.float32{t=1;at=0;dims=8*4,1*8} source=sbuf.float32{p=0;n=4;at=0;dims=1*8} ring=1 wait=dma0>=1^1 origin=0
dma_copy target=sbuf.float32{p=0;n=4;at=64;dims=1*8} source=dram.float32{t=1;at=0;dims=8*4,1*8} ring=0 wait=dma1>=1^1 origin=0
dma_copy target=dram.float32{t=3;at=0;dims=8*4,1*8} source=sbuf.float32{p=0;n=4;at=64;dims=1*8} ring=1 wait=dma0>=2^2 origin=0
"""  # noqa: E501


def test_what_was_spilled_and_when() -> None:
    made = make_report((), [Pipeline.of(replace(add_relu(), program=parse_program(SPILLS)))])
    (core,) = run_of(made.parts).cores
    (row,) = spilled(core)
    clock = core.recording.clock
    assert (row.name, row.bytes) == ("waits", 128)
    assert (row.begin_us * 1e6, row.end_us * 1e6) == pytest.approx((clock.start[1], clock.end[2]))
    # both copies, each 32 bytes of a group of 32 partitions: the one is read until the spill is out
    assert row.sbuf_share * core.recording.neff.device.sbuf_bytes == pytest.approx(32 * 32)
    text = made.to_html()
    assert "<h3>Spilled</h3>" in text
    assert "spills, read" in text
    assert made.dram_bytes_by_kind["scratch"] == 256


def test_nothing_on_the_neuroncore() -> None:
    text = make_report((Placement("nms", "NonMaxSuppression", "cpu", "its <size>"),), []).to_html()
    assert "Nothing runs on the NeuronCore" in text
    assert "its &lt;size&gt;" in text


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    made = make_report((), [Pipeline.of(add_relu())])
    monkeypatch.setitem(sys.modules, "bokeh", None)
    for name in [name for name in sys.modules if name.startswith(("bokeh.", "tvm_neuron.profile.page."))]:
        monkeypatch.delitem(sys.modules, name)
    message = r"a report in HTML needs the package bokeh: pip install 'tvm-neuron\[html\]'"
    with pytest.raises(OptionError, match=message):
        made.to_html()
    assert "pip install" in made._repr_html_()


def test_written_by_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(add_relu(), tmp_path / "r.neff")
    assert main(["report", str(tmp_path / "r.neff"), "--html", str(tmp_path / "r.html")]) == 0
    text = (tmp_path / "r.html").read_text()
    assert "<title>r.neff</title>" in text
    assert "<td>sum/relu</td><td>Relu</td>" in text
    assert main(["report", str(tmp_path / "r.neff"), "--html", str(tmp_path / "no" / "r.html")]) == 1
    assert "can't be written" in capsys.readouterr().err
