"""What can be varied, and how what can't is told, before anything is compiled."""

import re
import sys
from pathlib import Path

import pytest

from tvm_neuron import BuildOptions, jobs, sweep
from tvm_neuron.errors import DeviceError, ModelError, NeuronError, OptionError
from tvm_neuron.hw import Device, load_device
from tvm_neuron.sweep import lines
from tvm_neuron.sweep.area import area_mm2
from tvm_neuron.sweep.choices import OPTIONS, Value, parse, points


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("batch=1,4", [1, 4]),
        ("sbuf_bytes_per_partition=98304, 196608", [98304, 196608]),
        ("optlevel", [1, 2, 3]),
        ("fast_relayout", [False, True]),
        ("fast_relayout=True", [True]),
        ("minimum_segment_size=none,3", [None, 3]),
        ("time_budget_seconds=1.5,2", [1.5, 2.0]),
        ("fp32_cast=all,none", ["all", "none"]),
        ("weights_share", [3, 4, 6, 2]),
    ],
)
def test_values_of_a_command_line(text: str, values: list[Value]) -> None:
    assert parse(text) == (text.partition("=")[0], values)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sbuf=4", "no choice 'sbuf' to vary; there are batch; of compiling .*optlevel.*sbuf_bytes_per_partition"),
        ("device=inf2", "no choice 'device'"),
        ("batch", "--vary batch: say which values, --vary batch=VALUE,VALUE"),
        ("batch=one", "batch to vary is 'one': it must be a whole number"),
        ("batch=1,", "batch to vary is '': it must be a whole number"),
        ("fast_relayout=1", "fast_relayout to vary is '1': it must be true or false"),
        ("minimum_segment_size=x", "'x': it must be a whole number or none"),
    ],
)
def test_what_is_refused_on_a_command_line(text: str, words: str) -> None:
    with pytest.raises(OptionError, match=words):
        parse(text)


@pytest.mark.parametrize(
    ("vary", "kind", "words"),
    [
        ({"batch": [0]}, OptionError, "batch to vary is 0: it must be at least 1"),
        ({"batch": [True]}, OptionError, "batch to vary is True: it must be a whole number"),
        ({"batch": []}, OptionError, "give a list of values, one at least"),
        ({"fp32_cast": "all"}, OptionError, "give a list of values"),
        ({"fp32_cast": ["half"]}, OptionError, "half"),
        ({"optlevel": [2, 7]}, OptionError, "optlevel is 7; take one of 1, 2, 3"),
        ({"pe_rows": [0]}, DeviceError, "pe_rows is 0; it must be a whole number from 1"),
        ({"instance": ["inf1.tiny"]}, DeviceError, "unknown instance 'inf1.tiny'"),
        ({"weights_share": [0]}, OptionError, "must be at least 1"),
    ],
)
def test_what_is_refused_of_the_values(
    model: Path, vary: dict[str, list[Value]], kind: type[NeuronError], words: str
) -> None:
    with pytest.raises(kind, match=re.escape(words)):
        points([str(model)], ["inf2"], vary, BuildOptions())


def test_files_and_chips_that_are_not_there(model: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"nowhere\.onnx: no such file"):
        points([str(model), str(tmp_path / "nowhere.onnx")], ["inf2"], {}, BuildOptions())
    with pytest.raises(DeviceError, match="unknown device 'inf9'"):
        points([str(model)], ["inf2", "inf9"], {}, BuildOptions())


def test_the_product(model: Path) -> None:
    vary: dict[str, list[Value]] = {"batch": [1, 4], "sbuf_bytes_per_partition": [4096, 8192], "strip_share": [3, 3]}
    found = points([str(model)] * 2, ["inf1", "inf2"], vary, BuildOptions(fp32_cast="none"))
    assert [(each.chip, each.batch, each.device.sbuf_bytes_per_partition) for each in found] == [
        (chip, batch, size) for chip in ("inf1", "inf2") for batch in (1, 4) for size in (4096, 8192)
    ]
    assert {(each.options.fp32_cast, each.options.tuning.strip_share) for each in found} == {("none", 3)}
    assert found[0].device.sources["sbuf_bytes_per_partition"] == "varied by a sweep"
    assert len({each.key for each in found}) == len(found)
    assert points([str(model)], ["inf1"], vary, BuildOptions())[0].key != found[0].key  # another precision
    again = points([str(model)], ["inf1"], dict(reversed(vary.items())), BuildOptions(fp32_cast="none"))
    assert {each.key for each in again} == {each.key for each in found[:4]}


def test_every_option_with_plain_values_can_be_varied() -> None:
    assert {"optlevel", "fp32_cast", "pipeline_cores", "static_weights", "instance", "must_compile"} <= set(OPTIONS)
    assert not set(OPTIONS) & {*Device.numbers(), "device", "ends_at", "on_stage"}


def test_area_counts_what_is_varied() -> None:
    # 24 MB of SRAM at 0.346 um^2 a bit on 70 % of it, 128 x 128 cells of 5824 um^2, 2 x 128 lanes of 11884 um^2
    device = load_device("inf2")
    sram_mm2 = (device.sbuf_bytes + device.partitions * device.psum_bytes_per_partition) * 8 * 0.346 / 0.7 / 1e6
    assert area_mm2(device) == pytest.approx(sram_mm2 + 128 * 128 * 5824e-6 + 256 * 11884e-6, rel=1e-6)


def test_lines_outlive_a_writer_that_was_killed(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "a.jsonl"
    assert lines.load(file) == []
    lines.append(file, {"a": 1})
    file.write_text(file.read_text() + '{"b": {"c": 2}')  # as far as it came
    lines.append(file, {"d": 3})
    assert lines.load(file) == [{"a": 1}, {"d": 3}]


def test_without_the_extra_one_sentence_says_what_to_install(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(OptionError, match=r"^what runs in several processes needs the package ray: .*\[sweep\]"):
        next(jobs.results(str, [1]))
    with pytest.raises(OptionError, match=r"^a sweep needs the package \w+: pip install 'tvm-neuron\[sweep\]'$"):
        sweep.run([model])
