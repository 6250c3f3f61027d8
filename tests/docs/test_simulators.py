"""The table beside other simulators: what they are asked, how they are found, and how their answers are read."""

import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from benchmarks.simulators import __main__ as simulators
from benchmarks.simulators import rows
from benchmarks.simulators.ask import request
from benchmarks.simulators.graph import graph
from benchmarks.simulators.kept import Kept
from benchmarks.simulators.layers import Layer, layers
from benchmarks.simulators.measure import Measured, measure, read
from benchmarks.simulators.peers import PEERS, SCALE_SIM, AbsentError, Peer


def network(activation: str = "Relu") -> onnx.ModelProto:
    """A convolution with stride and padding, an activation, a dense layer."""
    weights = {"w": np.zeros((8, 3, 3, 3), np.float32), "v": np.zeros((8 * 5 * 5, 10), np.float32)}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1], strides=[2, 2], kernel_shape=[3, 3]),
        helper.make_node(activation, ["a"], ["b"]),
        helper.make_node("Flatten", ["b"], ["c"]),
        helper.make_node("Gemm", ["c", "v"], ["y"]),
    ]
    ends = [[helper.make_tensor_value_info(n, TensorProto.FLOAT, s)] for n, s in (("x", [1, 3, 9, 9]), ("y", [1, 10]))]
    constants = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    return helper.make_model(helper.make_graph(nodes, "network", *ends, constants))


def test_layers_have_the_size_with_padding_and_one_pixel_if_dense() -> None:
    assert layers(network()) == [
        Layer("conv0", 11, 11, 3, 3, 3, 8, 2),
        Layer("gemm3", 1, 1, 1, 1, 200, 10, 1),
    ]


def test_a_graph_is_in_nhwc_with_its_relu_fused() -> None:
    conv, dense = graph(network())
    assert (conv["kind"], conv["relu"], conv["same"], conv["stride"]) == ("CONV_2D", True, True, 2)
    assert (conv["input_shapes"], conv["output_shape"]) == ([[1, 9, 9, 3]], [1, 5, 5, 8])
    assert conv["weights"] == [8, 3, 3, 3]
    assert (dense["kind"], dense["inputs"], dense["weights"]) == ("FULLY_CONNECTED", ["a"], [10, 200])


def test_an_operator_that_a_graph_cannot_say_is_refused() -> None:
    with pytest.raises(ValueError, match="Erf is not translated"):
        graph(network("Erf"))


def test_all_are_asked_for_the_memories_of_the_chip(tmp_path: Path) -> None:
    asked = request(network(), tmp_path / "network.onnx")
    assert asked["array"] == {"rows": 128, "columns": 128, "buffer_kb": 4096, "words_per_cycle": 48}
    assert onnx.load(asked["onnx"]).graph.node[0].op_type == "Conv"


def test_the_option_wins_over_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SCALE_SIM.variable, sys.executable)
    assert SCALE_SIM.python(None) == Path(sys.executable)
    given = tmp_path / "python"
    given.touch()
    assert SCALE_SIM.python(given) == given


@pytest.mark.parametrize("peer", PEERS)
def test_an_absent_simulator_says_how_to_install_it(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(peer.variable, raising=False)
    with pytest.raises(AbsentError, match=f"neither {peer.option} nor {peer.variable} gives its Python; run `python3 "):
        peer.python(None)
    monkeypatch.setenv(peer.variable, "/no/such/python")
    with pytest.raises(AbsentError, match=r"there is no /no/such/python; run .*bin/pip install .*=="):
        peer.python(None)


@pytest.mark.slow
def test_nothing_is_published_without_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for peer in PEERS:
        monkeypatch.delenv(peer.variable, raising=False)
    monkeypatch.setattr(sys, "argv", ["simulators", "--publish", "--kept", str(tmp_path / "kept.json")])
    with pytest.raises(SystemExit):
        simulators.main()
    assert "Vela is left out: neither --vela nor VELA_PYTHON gives its Python" in capsys.readouterr().err


def test_what_was_measured_is_kept_for_the_same_request(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "build" / "kept.json")
    took = {
        peer: Measured(version="1", seconds=2.0, cpu_seconds=1.5, peak_bytes=10**9, cycles=number, array="small")
        for number, peer in enumerate(PEERS)
    }
    asked = {"onnx": "/tmp/a", "array": {"rows": 128}}
    assert kept.get(PEERS[0], asked) is None
    for peer, measured in took.items():
        kept.put(peer, asked, measured)
    assert {peer: kept.get(peer, {"onnx": "/tmp/b", "array": {"rows": 128}}) for peer in PEERS} == took
    assert kept.get(PEERS[0], asked | {"array": {"rows": 64}}) is None
    assert kept.get(replace(PEERS[0], requirements="another"), asked) is None


def took(seconds: float, peak_bytes: int | None) -> Measured:
    return Measured(version="1", seconds=seconds, cpu_seconds=1.0, peak_bytes=peak_bytes, cycles=7, array="")


def test_rows_of_the_table_of_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "light_network", lambda _name: network())
    monkeypatch.setattr(rows, "KEPT", Kept(tmp_path / "kept.json"))
    for peer in PEERS:
        monkeypatch.delenv(peer.variable, raising=False)
    found = {"run_ours.py": took(2.0, 50_000_000), SCALE_SIM.script: took(8.0, None)}
    monkeypatch.setattr(rows, "measure", lambda _python, _distribution, script, _asked: found[script])
    assert [(row.unit, row.ours, row.peer) for row in rows.beside_others()] == [("s", 2, ""), ("MB", 50, "")]
    monkeypatch.setenv(SCALE_SIM.variable, sys.executable)
    seconds, megabytes = rows.beside_others()
    assert (seconds.ratio, seconds.peer) == (0.25, "SCALE-Sim 1")
    assert megabytes.theirs is not None
    assert math.isnan(megabytes.theirs)


def test_a_script_is_run_and_measured(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import json, sys\nheld = bytearray(b'x' * 50_000_000)\nprint('log')\n"
        "print(json.dumps({'cycles': json.load(open(sys.argv[1]))['asked'] + 1}))\n"
    )
    found = measure(sys.executable, "numpy", str(script), {"asked": 41})
    assert (found.cycles, found.array, found.version) == (42, "128 x 128", np.__version__)
    assert found.cpu_seconds > 0
    assert found.peak_bytes is None or 50_000_000 < found.peak_bytes < 150_000_000


def test_a_script_that_fails_shows_the_end_of_its_errors(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("raise LookupError('no such array')\n")
    with pytest.raises(RuntimeError, match=r"script.py failed under .* with 1:\n(.*\n)*LookupError: no such array"):
        measure(sys.executable, "numpy", str(script), {})


@pytest.mark.parametrize("lines", [[], ["log"], ["log", "{}"], ["{}", '{"version": "1"}'], ["[1]", "{}"]])
def test_answers_that_are_none_are_refused(lines: list[str]) -> None:
    with pytest.raises(ValueError, match="the script's last two lines are no result"):
        read(lines, 1.0)


def test_an_answer_may_name_another_array() -> None:
    told = '{"version": "1", "cpu_seconds": 2.0, "peak_bytes": null}'
    found = read(["log", '{"cycles": 7, "array": "small"}', told], 1.5)
    assert (found.cycles, found.array, found.seconds, found.peak_bytes) == (7, "small", 1.5, None)
