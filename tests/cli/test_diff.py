"""neuron-cc diff: says what differs and nothing else, in text, JSON and a page; its exit code says whether."""

import json
from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.conftest import Cli
from tests.neff.samples import add_relu
from tests.onnx_models import mixed_model
from tvm_neuron import BuildOptions, neff, relay
from tvm_neuron.hw import load_device
from tvm_neuron.neff import Pipeline, Placement
from tvm_neuron.profile import make_report
from tvm_neuron.profile.difference import TITLES, Change, compare
from tvm_neuron.profile.kernels import KernelUse
from tvm_neuron.profile.spmd import SpmdUse
from tvm_neuron.spmd import StepTime


def test_a_file_and_itself(cli: Cli, neff_file: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.neff"
    copy.write_bytes(neff_file.read_bytes())
    assert cli("diff", neff_file, copy) == (0, "nothing that matters differs\n", "")
    code, out, _ = cli("diff", neff_file, copy, "--json")
    assert (code, json.loads(out)["differs"], json.loads(out)["changes"]) == (0, False, [])


def test_another_chip(cli: Cli, neff_file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.neff"
    neff.save(replace(add_relu(), device=load_device("inf2")), other)
    code, out, err = cli("diff", neff_file, other, "--html", tmp_path / "d.html", "--top", 2)
    assert (code, err) == (3, "")
    assert "inf1" in out
    assert "inf2" in out
    assert "latency_us" not in out.split("Operators, us")[1]
    assert "dram_bytes" not in out  # the same on both
    page = (tmp_path / "d.html").read_text()
    assert "<h2>Operators, us</h2>" in page
    assert "Relu sum/relu" in page
    told = json.loads(cli("diff", neff_file, other, "--json")[1])
    rows = {(row["group"], row["name"]): row for row in told["changes"]}
    one, two = (make_report((), [Pipeline.of(neff.load(path))]) for path in (neff_file, other))
    row = rows["numbers", "latency_us"]
    assert (row["before"], row["after"]) == (one.latency_us, two.latency_us)
    assert row["ratio"] == pytest.approx(two.latency_us / one.latency_us)


def test_an_operator_that_moved_to_the_cpu(cli: Cli, tmp_path: Path) -> None:
    mod, params = relay.frontend.from_onnx(mixed_model())
    for name, on_cpu in (("a.so", ()), ("b.so", ("sigmoid",))):
        relay.build(mod, params=params, options=BuildOptions(on_cpu=on_cpu)).export_library(tmp_path / name)
    code, out, _ = cli("diff", tmp_path / "a.so", tmp_path / "b.so", "--json")
    assert code == 3
    rows = {(row["group"], row["name"]): row for row in json.loads(out)["changes"]}
    moved = rows["placement", "Sigmoid sigmoid"]
    assert (moved["before"], moved["after"], moved["ratio"]) == ("neuroncore", "cpu", None)
    assert rows["layers", "Sigmoid sigmoid"]["after"] is None


@given(st.sampled_from(["latency_us", "dram_bytes", "instructions", "spill_bytes"]), st.integers(1, 99))
def test_the_tolerance(name: str, percent: int) -> None:
    """What differs by less than the tolerance does not matter, what differs by more does."""
    one = make_report((), [Pipeline.of(add_relu())])
    one = replace(one, **{name: 10_000})
    other = replace(one, **{name: 10_000 - 100 * percent})
    names = ("a", "b")
    assert not compare(one, other, names, (percent + 0.1) / 100).changes
    (change,) = compare(one, other, names, (percent - 0.1) / 100).changes
    assert change == Change("numbers", name, 10_000, 10_000 - 100 * percent)


def test_every_field_that_matters_is_compared() -> None:
    """Of a report; those that are left out follow from others, or from the clock of the machine alone."""
    one = make_report(add_relu().placement, [Pipeline.of(add_relu())])
    changed = {
        "device": "other", "precision": {"fp32_cast": "none"}, "placement": (Placement("x", "Y", "cpu", "why"),),
        "dram_bytes_by_kind": {"weight": 1}, "engines": (), "layers": (), "subgraphs": (), "transfers": (),
        "kernels": (KernelUse("neuron_0", "softmax", 1.0, None),),
        "spmd": SpmdUse(2, "inf2.xlarge", (StepTime("sum", "all_reduce", 2, 64, 3.0),), 0.5),
    }  # fmt: skip
    for each in fields(one):
        if each.name in ("pipelines", "parts", "end_to_end"):
            continue
        value = changed.get(each.name, 0.5)
        assert compare(one, replace(one, **{each.name: value}), ("a", "b")).changes, each.name
    assert len(TITLES) == 8


def test_exchanges_are_compared() -> None:
    """Of programs on several cores: how many, what they exchange, and what sharing the DRAM takes."""
    alone = make_report(add_relu().placement, [Pipeline.of(add_relu())])
    before, after = (
        replace(alone, spmd=SpmdUse(cores, "inf2.xlarge", (StepTime("sum", "all_reduce", cores, 64, us),), us / 4))
        for cores, us in ((2, 4.0), (4, 8.0))
    )
    found = [(row.group, row.name, row.before, row.after) for row in compare(before, after, ("a", "b")).changes]
    wanted = [("model", "cores", 2, 4), ("numbers", "shared_us", 1.0, 2.0), ("layers", "all_reduce sum", 4.0, 8.0)]
    assert found == wanted


def test_operators_of_one_name_are_told_apart() -> None:
    rows = [Placement("same", "Add", "cpu", ""), Placement("same", "Add", "cpu", "")]
    one, other = make_report(rows, []), make_report([rows[0], replace(rows[1], where="neuroncore")], [])
    (change,) = compare(one, other, ("a", "b")).changes
    assert change == Change("placement", "Add same (2)", "cpu", "neuroncore")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--tolerance", -1), "--tolerance -1: it is a percentage, from 0 to less than 100"),
        (("--top", -1), "--top -1: it is a number of rows, at least 0"),
    ],
)
def test_what_is_refused(cli: Cli, neff_file: Path, words: tuple, message: str) -> None:
    code, _, told = cli("diff", neff_file, neff_file, *words)
    assert code == 1
    assert message in told
