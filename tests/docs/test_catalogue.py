"""The catalogue's measuring, its records and what is told of them; its networks need torch and are no part of this."""

import json
import math
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

from benchmarks.catalogue import records, table
from benchmarks.catalogue.apart import preload, run_apart
from benchmarks.catalogue.compare import comparison
from benchmarks.catalogue.entry import Entry
from benchmarks.catalogue.measure import Job, measure
from benchmarks.catalogue.of_timm import form_of
from benchmarks.catalogue.products import multiplications
from benchmarks.catalogue.reference import Reference, keep_reference
from benchmarks.catalogue.sources import ONNX_FOLDER, entries
from tvm_neuron.codegen import capability
from tvm_neuron.sweep import lines

MODEL = """
    <ir_version: 8, opset_import: ["" : 18]>
    small (float[1, 8, 6, 6] x) => (float[1, 36, 4] y, float[1, 16, 6, 6] c) {
        c = Conv <pads = [1, 1, 1, 1]> (x, w)
        shape = Constant <value_ints = [1, 36, 16]> ()
        r = Reshape(c, shape)
        y = MatMul(r, v)
    }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    model = parser.parse_model(MODEL)
    rng = np.random.default_rng(0)
    for name, shape in (("w", (16, 8, 3, 3)), ("v", (16, 4))):
        model.graph.initializer.append(numpy_helper.from_array(rng.standard_normal(shape, np.float32), name))
    onnx.save(model, tmp_path / "model.onnx")
    keep_reference(model, {"x": rng.standard_normal((1, 8, 6, 6), np.float32)}, tmp_path)
    return tmp_path


def found(name: str, us: float, **more: object) -> records.Record:
    known = {"name": name, "family": "f", "chip": "inf2", "outcome": "built", "compile_seconds": 2.0}
    return known | {"latency_us": us, "roofline_us": 10.0, "bound_us": 12.5, "macs": 60} | more


def test_a_drawn_network_says_its_images() -> None:
    assert form_of("edgenext_small@3x288") == ("edgenext_small", 3, 288)
    assert form_of("mixnet_s") == ("mixnet_s", None, None)


def test_a_network_is_compiled_timed_and_compared_in_both_precisions(folder: Path) -> None:
    measure(Job(folder, "inf2", False, folder / "found.json"))
    record = records.read(folder / "found.json")
    assert record["outcome"] == "built"
    assert (record["operators_on_core"], record["operators_on_cpu"]) == (3, 0)
    assert record["macs"] == multiplications(onnx.load(folder / "model.onnx"), {"c", "y"}) == 36 * 16 * (72 + 4)
    assert 0 < record["error_fp32"] < record["bound_fp32"] < record["error"] < record["bound"] < 0.02
    assert records.ratio(record) == record["latency_us"] / record["roofline_us"] > 1
    assert record["compile_seconds"] > 0
    assert not records.is_wrong(record)


def test_only_time_runs_nothing(folder: Path) -> None:
    measure(Job(folder, "inf1", True, folder / "found.json"))
    record = records.read(folder / "found.json")
    assert record["outcome"] == "built"
    assert "error" not in record


def test_a_network_whose_sizes_a_run_tells_runs_in_stages(tmp_path: Path) -> None:
    """Two rows and sixteen columns more on each side, as many as there are places that are not zero."""
    model = parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 18]>
        open (float[2, 8] x) => (float[n, 4] y) {
            places = NonZero(x)
            sizes = Shape(places)
            widths = Concat <axis = 0> (sizes, sizes)
            wide = Pad(x, widths)
            first = Constant <value_ints = [16]> ()
            last = Constant <value_ints = [24]> ()
            axis = Constant <value_ints = [1]> ()
            part = Slice(wide, first, last, axis)
            y = MatMul(part, v)
        }
    """)
    rng = np.random.default_rng(0)
    model.graph.initializer.append(numpy_helper.from_array(rng.standard_normal((8, 4), np.float32), "v"))
    onnx.save(model, tmp_path / "model.onnx")
    keep_reference(model, {"x": rng.standard_normal((2, 8), np.float32)}, tmp_path)
    measure(Job(tmp_path, "inf2", False, tmp_path / "found.json"))
    record = records.read(tmp_path / "found.json")
    assert record["outcome"] == "built"
    assert "NonZero" in record["cpu_operators"]
    assert record["operators_on_core"] >= 1
    assert record["error_fp32"] < record["bound_fp32"] < record["error"] < record["bound"] < 0.02
    assert record["bound_us"] <= record["latency_us"]


def test_a_defect_is_told_whatever_runs_in_spite_of_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **_more: object) -> None:
        raise AssertionError("planted")

    monkeypatch.setattr(capability, "make_kernels", fail)
    measure(Job(folder, "inf2", True, folder / "found.json"))
    record = records.read(folder / "found.json")
    assert record["outcome"] == "defect"
    assert "planted" in record["message"]


def test_wrong_results_and_other_shapes_are_told(folder: Path) -> None:
    reference = Reference.load(folder)
    exact = list(reference.exact.values())
    assert reference.worst(exact)[0] == 0
    error, bound = reference.worst([exact[0], exact[1] * 1.1])
    assert error == pytest.approx(0.1)
    assert error > bound
    assert reference.worst([exact[0], exact[1][:, :2]])[0] == math.inf
    assert reference.worst([exact[0] * math.nan, exact[1]])[0] == math.inf


def test_a_network_that_makes_noise_of_rounding_is_allowed_its_own(tmp_path: Path) -> None:
    """A thousandth is left of inputs near 1: the last of 24 digits becomes one of the first 14."""
    model = parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 18]>
        noisy (float[200] x) => (float[200] y) { one = Constant <value_floats = [1.0]> () y = Sub(x, one) }
    """)
    x = 1 + np.random.default_rng(0).uniform(0.001, 0.002, 200).astype(np.float32)
    keep_reference(model, {"x": x}, tmp_path)
    reference = Reference.load(tmp_path)
    ((name, exact),) = reference.exact.items()
    reference.bounds[name] = 0.0  # bfloat16 knows nothing of that
    error, bound = reference.worst_in_float32([exact * 1.00005], model)
    assert error == pytest.approx(5e-5, rel=0.1)
    assert 2 * 2.0**-24 / 0.002 < bound < 2 * 2.0**-22 / 0.001
    assert error < bound


def test_what_a_user_would_be_told_is_a_refusal_and_all_else_a_failure(folder: Path) -> None:
    model = onnx.load(folder / "model.onnx")
    model.graph.node[0].op_type = "NoSuchOperator"
    onnx.save(model, folder / "model.onnx")
    measure(Job(folder, "inf2", True, folder / "found.json"))
    assert records.read(folder / "found.json")["outcome"] == "refused"
    (folder / "model.onnx").unlink()
    measure(Job(folder, "inf2", True, folder / "found.json"))
    record = records.read(folder / "found.json")
    assert record["outcome"] == "failed"
    assert record["message"].startswith("FileNotFoundError: ")


@pytest.mark.slow
def test_limits_of_a_process() -> None:
    preload([])
    assert run_apart(time.sleep, (0,), 60, 10**9) == ""
    assert run_apart(_turn, (), 1, 10**9) == "took more than 1 s"
    assert run_apart(_fill, (), 60, 10**9) == "ended with 1"


def test_the_last_line_of_a_network_counts_and_half_a_line_does_not(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "found.jsonl"
    assert records.load(file) == {}
    for record in (found("a", 20), found("b", 30), found("a", 15)):
        lines.append(file, record)
    file.write_text(file.read_text() + '{"name": "c", "late')
    assert {name: each["latency_us"] for name, each in records.load(file).items()} == {"a": 15, "b": 30}


def test_a_comparison_names_what_changed() -> None:
    old = {each["name"]: each for each in (found("a", 20), found("b", 30), found("c", 10), found("old", 1))}
    new = {
        "a": found("a", 40, batch=4),
        "b": found("b", 90, error=0.2, bound=0.1),
        "c": {**found("c", 0), "outcome": "failed"},
    }
    assert comparison(old, new).splitlines() == [
        "2 networks in both; new over old, geometric mean 1.2247",
        "compile seconds 4, before 4",
        "slower: b 3.000x, 30.0 to 90.0 us",
        "quicker: a 0.500x, 20.0 to 10.0 us",
        "wrong: b was False, is True",
        "outcome: c was built, is failed",
    ]


def test_a_table_and_its_summary() -> None:
    rows = [found("a", 20), found("b", 90, error=0.2, bound=0.1, cpu_operators={"TopK": 2}, macs_on_cpu=20)]
    rows.append({"name": "c", "family": "f", "chip": "inf2", "outcome": "refused", "message": "a |\nb"})
    text = table.markdown([{row["name"]: row for row in rows}])
    assert text.splitlines()[0] == (
        "3 networks on inf2: 1 built, 1 wrong, 1 refused. Modelled time over roofline: geometric mean 4.24, median"
        " 5.50, worst 9.0 (b), over the bound 3.39. Compile seconds: median 2.0, most 2.0."
    )
    assert "| b | f | inf2 | wrong |  |  | 75% | 20.00% | 10.00% |  | 90.0 | 9.00 | 7.20 | 2.0 |  | 2 TopK |" in text
    assert "| c | f | inf2 | refused |  |  |  |  |  |  |  |  |  |  |  | a / b |" in text


def test_the_list_of_networks_is_kept_beside_their_files(tmp_path: Path) -> None:
    (tmp_path / "entries.json").write_text(json.dumps([{"source": "timm", "family": "resnet", "model": "resnet10t"}]))
    assert entries(tmp_path) == [Entry("timm", "resnet", "resnet10t")]
    assert entries(tmp_path)[0].name == "timm-resnet10t"


def _turn() -> None:
    while True:
        pass


def _fill() -> None:
    kept = bytearray(2 * 10**9)
    raise AssertionError(len(kept))


def test_networks_are_kept_outside_of_the_compilers_cache() -> None:
    assert Path.home() / ".cache" / "tvm_neuron" not in (ONNX_FOLDER, *ONNX_FOLDER.parents)
