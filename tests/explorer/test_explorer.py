"""Compiled files in Model Explorer, asked as its server asks: by its manager of extensions."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tvm
from onnx import helper

import tvm_neuron
from tests.cli.conftest import Cli, cli  # noqa: F401 (a fixture)
from tests.numerics.models import convolved
from tests.onnx_models import make_model, mixed_model
from tests.random_models.judge import REFUSALS
from tests.random_models.model import random_model
from tests.stages.networks import small_network
from tvm_neuron import BuildOptions, relay

pytestmark = pytest.mark.explorer


@pytest.fixture(scope="module")
def manager() -> Any:
    from model_explorer.extension_manager import ExtensionManager

    made = ExtensionManager(["tvm_neuron.explorer"])
    made.load_extensions()
    return made


def graphs(manager: Any, path: Path) -> list[dict[str, Any]]:
    command = {"cmdId": "convert", "extensionId": "tvm_neuron", "modelPath": str(path), "settings": {}}
    found: list[dict[str, Any]] = manager.run_cmd(command | {"deleteAfterConversion": False})["graphs"]
    json.dumps(found)  # as it is sent to the browser
    return found


def numbers(manager: Any, path: Path, graph: str, **config: str) -> Any:
    command = {"cmdId": "run", "extensionId": "tvm_neuron_numbers", "modelPath": str(path), "graphId": graph}
    found = manager.run_cmd(command | {"configValues": config})
    return found["error"] or {
        one["name"]: {k: v["value"] for k, v in one["results"].items()} for one in found["result"]
    }


def built(path: Path, model: onnx.ModelProto, options: BuildOptions | None = None) -> tvm.runtime.Module:
    mod, params = relay.frontend.from_onnx(model)
    relay.build(mod, params=params, options=options or BuildOptions()).export_library(path)
    return tvm.runtime.load_module(str(path))


def nodes_of(graph: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """By operator's name or label; every edge comes from an output that is there."""
    nodes = {node["id"]: node for node in graph["nodes"]}
    assert len(nodes) == len(graph["nodes"])
    for node in nodes.values():
        for edge in node["incomingEdges"]:
            outputs = {one["id"] for one in nodes[edge["sourceNodeId"]]["outputsMetadata"]}
            assert edge["sourceNodeOutputId"] in outputs
    return {attributes(node).get("operator") or node["id"]: node for node in nodes.values()}


def attributes(node: Mapping[str, Any]) -> dict[str, str]:
    return {row["key"]: row["value"] for row in node["attrs"]}


def edges(graph: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    """The shape of what is passed, by names of who passes it to whom."""
    nodes = {node["id"]: node for node in graph["nodes"]}
    found = {}
    for target in nodes.values():
        for edge in target["incomingEdges"]:
            source = nodes[edge["sourceNodeId"]]
            output = next(one for one in source["outputsMetadata"] if one["id"] == edge["sourceNodeOutputId"])
            ends = tuple(attributes(node).get("operator") or node["label"] for node in (source, target))
            found[ends[0], ends[1]] = attributes(output)["tensor_shape"]
    return found


def test_a_library(manager: Any, tmp_path: Path) -> None:
    library = built(tmp_path / "mixed.so", mixed_model())
    (graph,) = graphs(manager, tmp_path / "mixed.so")
    nodes, passed = nodes_of(graph), edges(graph)
    report = tvm_neuron.report(library)
    assert {name for name, node in nodes.items() if attributes(node).get("runs") == "on the CPU"} == {"topk"}
    assert attributes(nodes["topk"])["reason"] == next(r.reason for r in report.placement if r.name == "topk")
    assert {name: node["namespace"] for name, node in nodes.items()} == {
        "input x": "", "conv": "neuron_0", "concat": "neuron_0", "sigmoid": "neuron_0", "topk": "",
        "mul": "neuron_1", "pool": "neuron_1", "matmul": "neuron_1", "output out": "", "output gate": "",
    }  # fmt: skip
    # what stays on the core has partitions and elements of each, which the compiler chooses: as many as in the model
    of_model = {
        ("x", "conv"): [1, 3, 8, 8], ("conv", "concat"): [1, 20, 8, 8], ("concat", "sigmoid"): [1, 20, 8, 8],
        ("concat", "topk"): [1, 20, 8, 8], ("topk", "mul"): [1, 20, 8, 8], ("concat", "mul"): [1, 20, 8, 8],
        ("mul", "pool"): [1, 20, 8, 8], ("pool", "matmul"): [1, 20], ("matmul", "out"): [1, 4],
        ("sigmoid", "gate"): [1, 20, 8, 8],
    }  # fmt: skip
    elems = {ends: np.prod(json.loads(text[text.index("[") :])) for ends, text in passed.items()}
    assert elems == {ends: np.prod(shape) for ends, shape in of_model.items()}
    for ends in (("x", "conv"), ("concat", "topk"), ("concat", "mul"), ("matmul", "out"), ("sigmoid", "gate")):
        assert passed[ends] == f"float32{of_model[ends]}"
    assert passed["topk", "mul"] == "int64[1, 20, 8, 8]"
    assert attributes(nodes["matmul"])["weights matmul.weights"].startswith("bfloat16[")


def test_numbers_are_those_of_the_report(manager: Any, tmp_path: Path) -> None:
    library = built(tmp_path / "net.so", small_network())
    (graph,) = graphs(manager, tmp_path / "net.so")
    names = {node["id"]: name for name, node in nodes_of(graph).items()}
    found = numbers(manager, tmp_path / "net.so", graph["id"])
    assert list(found) == ["us", "MB", "PE array %", "engine"]
    report = tvm_neuron.report(library)
    layers = {layer.name: layer for layer in report.layers}
    assert sum(found["us"].values()) == pytest.approx(report.latency_us)
    assert sum(found["MB"].values()) * 1e6 == pytest.approx(report.dram_bytes)
    for node, us in found["us"].items():
        layer = layers[names[node]]
        assert us == pytest.approx(layer.latency_us)
        assert found["engine"][node] == max(layer.busy_us, key=lambda name: layer.busy_us[name])
        assert 0 <= found["PE array %"][node] <= 100
    assert max(found["PE array %"].values()) > 0


def test_errors_of_a_comparison(manager: Any, tmp_path: Path, cli: Cli) -> None:  # noqa: F811
    onnx.save(convolved(), tmp_path / "net.onnx")
    built(tmp_path / "net.so", convolved(), BuildOptions(device="neuron/inf2"))
    _, out, _ = cli("compare", tmp_path / "net.onnx", "--target", "inf2", "--json", "--beginnings", 2)
    (tmp_path / "errors.json").write_text(out)
    told = {row["name"]: row for row in json.loads(out)["operators"]}
    (graph,) = graphs(manager, tmp_path / "net.so")
    names = {node["id"]: name for name, node in nodes_of(graph).items()}
    found = numbers(manager, tmp_path / "net.so", graph["id"], comparison=str(tmp_path / "errors.json"))
    assert found["error entering %"]
    for name, key in (("error entering %", "alone"), ("error up to here %", "grown")):
        for node, value in found[name].items():
            assert value == pytest.approx(100 * told[names[node]][key]["error"])
    written = tvm_neuron.explorer.save_node_data(
        str(tmp_path / "net.so"), str(tmp_path / "data"), str(tmp_path / "errors.json")
    )
    assert [path.name for path in written] == [
        "us.json", "MB.json", "PE_array.json", "error_entering.json", "error_up_to_here.json", "engine.json",
    ]  # fmt: skip
    kept = json.loads(written[0].read_text())[graph["id"]]["results"]
    assert {node: row["value"] for node, row in kept.items()} == found["us"]


def test_modules_cores_and_buckets(manager: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    weights = {name: rng.standard_normal((16, 16)).astype("float32") for name in "wvu"}
    names = ("/block.0/attention/MatMul", "/block.0/mlp/MatMul", "head.MatMul")
    chain = zip(names, ("x", "a", "b"), "wvu", ("a", "b", "y"), strict=True)
    nodes = [helper.make_node("MatMul", [x, w], [y], name) for name, x, w, y in chain]
    model = make_model(nodes, {"x": [4, 16]}, ["y"], weights)
    built(tmp_path / "modules.so", model)
    (graph,) = graphs(manager, tmp_path / "modules.so")
    assert {name: nodes_of(graph)[name]["namespace"] for name in names} == {
        names[0]: "neuron_0/block.0/attention", names[1]: "neuron_0/block.0/mlp", names[2]: "neuron_0/head",
    }  # fmt: skip

    library = built(tmp_path / "cores.so", model, BuildOptions(pipeline_cores=2))
    (tmp_path / "cores.neff").write_bytes(next(iter(tvm_neuron.runtime.neffs(library).values())))
    for file in ("cores.so", "cores.neff"):
        (graph,) = graphs(manager, tmp_path / file)
        spaces = [nodes_of(graph)[name]["namespace"].split("/")[1] for name in names]
        assert set(spaces) == {"core 0", "core 1"}
        passed = edges(graph)
        border = spaces.index("core 1")
        at_border = passed[names[border - 1], names[border]]  # as one core writes it for the other
        assert np.prod(json.loads(at_border[at_border.index("[") :])) == 4 * 16
        assert passed["x", names[0]] == "float32[4, 16]"
        assert passed[names[2], "y"] == "float32[4, 16]"

    imports = [relay.frontend.from_onnx(make_model(nodes, {"x": [rows, 16]}, ["y"], weights)) for rows in (2, 8)]
    relay.build_buckets(imports).export_library(tmp_path / "buckets.so")
    found = graphs(manager, tmp_path / "buckets.so")
    assert [(graph["id"], edges(graph)["x", names[0]]) for graph in found] == [
        ("bucket 0", "float32[2, 16]"), ("bucket 1", "float32[8, 16]"),
    ]  # fmt: skip
    small, large = (sum(numbers(manager, tmp_path / "buckets.so", graph["id"])["us"].values()) for graph in found)
    assert small < large


def ancestors(of: Mapping[str, set[str]], name: str) -> set[str]:
    seen, pending = set[str](), [name]
    while pending:
        one = pending.pop()
        if one not in seen:
            seen.add(one)
            pending += of.get(one, ())
    return seen


@pytest.mark.parametrize("seed", range(6))
def test_nothing_comes_from_where_the_model_has_it_not_from(manager: Any, tmp_path: Path, seed: int) -> None:
    """Of random models: outputs depend on no input that they do not in ONNX, and every operator's time is there.

    What is concatenated may be read where it lies then, beside the other parts.
    """
    model = random_model(seed)
    try:
        library = built(tmp_path / "m.so", model.proto(), BuildOptions(fp32_cast=model.mode))
    except REFUSALS:
        pytest.skip("refused")
    (graph,) = graphs(manager, tmp_path / "m.so")
    nodes_of(graph)
    of = {node["id"]: {edge["sourceNodeId"] for edge in node["incomingEdges"]} for node in graph["nodes"]}
    in_onnx = {made: set(node.input) for node in model.proto().graph.node for made in node.output}
    for node in model.proto().graph.node:
        for part in node.input if node.op_type == "Concat" else ():
            in_onnx.setdefault(part, set()).update(node.input)
    for output in model.outputs:
        found = {name.removeprefix("input ") for name in ancestors(of, f"output {output}") if name.startswith("input ")}
        assert found <= ancestors(in_onnx, output)
    found = numbers(manager, tmp_path / "m.so", graph["id"])
    assert sum(found.get("us", {}).values()) == pytest.approx(tvm_neuron.report(library).latency_us)


def test_one_sentence_says_what_is_wrong(manager: Any, tmp_path: Path) -> None:
    (tmp_path / "text.neff").write_text("no program")
    with pytest.raises(tvm_neuron.errors.NeffError):
        graphs(manager, tmp_path / "text.neff")
    assert "is neither a .neff nor a library" in numbers(manager, tmp_path / "text.neff", "library")
    built(tmp_path / "net.so", convolved())
    assert numbers(manager, tmp_path / "net.so", "bucket 7").endswith("net.so' has no graph 'bucket 7'")
    (tmp_path / "errors.json").write_text('{"operators": [{"name": "conv0", "alone": 5}]}')
    for name, why in (("errors.json", "TypeError: "), ("nowhere.json", "FileNotFoundError: ")):
        told = numbers(manager, tmp_path / "net.so", "library", comparison=str(tmp_path / name))
        assert f"{name}' is not what neuron-cc compare --json prints: {why}" in told
    told = manager.run_cmd({"cmdId": "get_config_editors", "extensionId": "tvm_neuron_numbers"})
    assert [editor["id"] for editor in told["configEditors"]] == ["comparison"]
