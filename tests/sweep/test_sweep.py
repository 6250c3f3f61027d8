"""Whole sweeps: their rows are what a build by hand gives, they go on where they were killed, and say what failed."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import tvm_neuron
from tests.cli.conftest import Cli, cli  # noqa: F401
from tvm_neuron import BuildOptions, relay, sweep
from tvm_neuron.bundle import IoConfig
from tvm_neuron.hw.load import device_to_dict, load_device
from tvm_neuron.sweep.run import PAGE, POINTS, TABLE, Progress

pytestmark = pytest.mark.sweep
SIZES = [32768, 98304]


@pytest.mark.usefixtures("processes")
def test_rows_are_what_builds_by_hand_give(model: Path, tmp_path: Path) -> None:
    import pandas as pd

    told: list[Progress] = []
    vary = {"batch": [1, 4], "sbuf_bytes_per_partition": SIZES, "must_compile": [True]}
    frame = sweep.run([model], ["inf2"], vary, folder=tmp_path / "new", on_point=told.append)
    assert list(frame["outcome"]) == ["compiled"] * 4
    assert [(each.done, each.total) for each in told] == [(done, 4) for done in range(1, 5)]
    assert told[-1].seconds_left == 0
    for row in frame.itertuples():
        device = tmp_path / "device.json"
        numbers = device_to_dict(load_device("inf2"))
        numbers["sbuf_bytes_per_partition"]["value"] = row.sbuf_bytes_per_partition
        device.write_text(json.dumps(numbers))
        mod, params = relay.frontend.from_onnx(model, {"x": (row.batch, 8, 14, 14)})
        report = tvm_neuron.report(relay.build(mod, params=params, options=BuildOptions(device=str(device))))
        assert (row.latency_us, row.dram_bytes) == (report.latency_us, report.dram_bytes)
        assert row.us_per_row == pytest.approx(report.interval_us / row.batch)
        assert row.memory_bytes >= 4 * (row.batch * 8 * 14 * 14 + row.batch * 4)  # the input and the output, in float32
    assert frame["area_mm2"].nunique() == 2
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "new" / TABLE), frame)
    page = (tmp_path / "new" / PAGE).read_text()
    assert page.count('class="plot"') == 4  # three pairs of numbers and a heat map
    assert "<script src" not in page  # it opens offline


@pytest.mark.usefixtures("processes")
def test_what_cannot_be_compiled_is_a_row_with_its_reason(model: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.onnx"
    text.write_text("no model")
    frame = sweep.run([text, model], ["inf2"], {"sbuf_bytes_per_partition": [512, 98304], "must_compile": [True]})
    assert list(frame["outcome"]) == ["refused"] * 4
    assert "not an ONNX file" in frame["reason"][0]
    assert "dynamic dimension 'n' at axis 0" in frame["reason"][3]
    frame = sweep.run([model], ["inf2"], {"sbuf_bytes_per_partition": [512, 98304], "must_compile": [True, False],
                                          "batch": [1]})  # fmt: skip
    assert list(frame["outcome"]) == ["refused", "compiled", "compiled", "compiled"]
    assert "conv" in frame["reason"][0]
    assert frame["reason"][1].startswith("nothing runs on the NeuronCore: ")
    assert frame["latency_us"].isna().tolist() == [True, True, False, False]
    sizes = IoConfig({"x": (2, 8, 14, 28)}, {"x": "float32"})
    wide = sweep.run([model], ["inf2"], {"batch": [1, 3]}, inputs=sizes)
    assert (wide["latency_us"] > frame["latency_us"][2]).all()
    assert list(wide["batch"]) == [1, 3]
    assert list(sweep.run([model], ["inf2"], inputs=sizes)["batch"]) == [2]


def test_a_killed_sweep_goes_on_where_it_was(model: Path, tmp_path: Path, cli: Cli) -> None:  # noqa: F811
    words = ["sweep", "--models", str(model), "--vary", "batch=1,2,3,4,5,6,7,8", "--vary", "optlevel=1",
             "--output", str(tmp_path / "out"), "--processes", "1"]  # fmt: skip
    points = tmp_path / "out" / POINTS
    started = subprocess.Popen(
        [sys.executable, "-m", "tvm_neuron.cli.main", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    end = time.monotonic() + 120
    while not (points.exists() and points.read_text().count("\n") >= 2):
        assert started.poll() is None, "it ended by itself"
        assert time.monotonic() < end
        time.sleep(0.005)
    os.kill(started.pid, signal.SIGKILL)
    started.wait()
    before = points.read_text()
    points.write_text(before + '{"key": "half a li')
    there = before.count("\n")
    assert 2 <= there < 8
    code, out, err = cli(*words, "--json")
    assert (code, err) == (0, "")
    rows = json.loads(out)
    assert [row["batch"] for row in rows] == list(range(1, 9))
    assert {row["outcome"] for row in rows} == {"compiled"}
    added = points.read_text().removeprefix(before).splitlines()
    assert len(added) == 1 + 8 - there  # none twice
    old = [json.loads(line)["row"] for line in before.splitlines()]
    assert all(any(row["latency_us"] == each["latency_us"] for row in rows) for each in old)
    begin = points.stat().st_size
    code, out, err = cli(*words)
    assert code == 0
    assert "8 points: 8 compiled" in out.replace("\n", " ")
    assert "the best points" in out
    assert points.stat().st_size == begin


def test_of_a_command_line_that_is_wrong_nothing_is_compiled(model: Path, tmp_path: Path, cli: Cli) -> None:  # noqa: F811
    for words, told in (
        (["--vary", "batch=1", "--vary", "batch=2"], "--vary batch is given twice"),
        (["--vary", "sbuf=1"], "no choice 'sbuf'"),
        (["--processes", "0"], "--processes 0: it must be at least 1"),
        (["--chip", "inf9"], "unknown device 'inf9'"),
    ):
        code, out, err = cli("sweep", "--models", model, "--output", tmp_path / "out", *words)
        assert (code, out) == (1, "")
        assert told in err
    assert not (tmp_path / "out").exists()
