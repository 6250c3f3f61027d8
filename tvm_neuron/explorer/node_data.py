"""node_data: numbers for each operator of a graph: time, engine, DRAM traffic, use of the PE array, errors."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvm_neuron.errors import InputError, from_extra
from tvm_neuron.explorer.opened import Opened, open_file
from tvm_neuron.explorer.operators import shown
from tvm_neuron.isa.engines import COMPUTE

if TYPE_CHECKING:
    from model_explorer.node_data_builder import GraphNodeData

_COLORS = dict(zip(COMPUTE, ("#0072B2", "#E69F00", "#009E73", "#CC79A7"), strict=False)) | {"dma": "#999999"}
_ERRORS = {"error entering %": "alone", "error up to here %": "grown"}


def save_node_data(path: str, folder: str, comparison: str = "") -> list[Path]:
    """Writes a file for each kind of number, which Model Explorer loads as node data; the paths of them.

    `comparison` is a file with what `neuron-cc compare --json` printed.

    Raises:
        NeuronError: a file can't be read; the extra `explorer` is not installed.
    """
    with from_extra("explorer", "node data"):
        from model_explorer.node_data_builder import GraphNodeData, ModelNodeData
    errors = read_comparison(comparison)
    by_name: dict[str, dict[str, GraphNodeData]] = {}
    for opened in open_file(path):
        for one in node_data(opened, errors):
            by_name.setdefault(str(one.name), {})[opened.name] = one
    Path(folder).mkdir(parents=True, exist_ok=True)
    written = []
    for name, graphs in by_name.items():
        written.append(Path(folder, f"{name.replace(' %', '').replace(' ', '_')}.json"))
        written[-1].write_text(ModelNodeData(graphs).to_json_string(indent=1))
    return written


def read_comparison(path: str) -> Mapping[str, Mapping[str, Any]]:
    """What `neuron-cc compare --json` printed, by operator; nothing without a path.

    Raises:
        InputError: the file can't be read, or is not that.
    """
    if not path:
        return {}
    try:
        found = {str(row["name"]): row for row in json.loads(Path(path).read_text())["operators"]}
        for row in found.values():
            _error(row, "alone"), _error(row, "grown")
    except (OSError, ValueError, LookupError, TypeError) as error:
        told = f"{type(error).__name__}: {error}"
        raise InputError(f"'{path}' is not what neuron-cc compare --json prints: {told}") from error
    return found


def node_data(opened: Opened, errors: Mapping[str, Mapping[str, Any]]) -> list["GraphNodeData"]:
    """A list of values by node for each kind of number; errors only where there are any."""
    from model_explorer.node_data_builder import GradientItem, GraphNodeData, NodeDataResult

    rows = [one for number, step in enumerate(opened.steps) for one in shown(number, step)]
    kinds: dict[str, dict[str, Any]] = {
        "us": {one.node: one.facts.us for one in rows},
        "MB": {one.node: one.facts.dram_bytes / 1e6 for one in rows},
        "PE array %": {one.node: 100 * one.array_share for one in rows},
    }
    for name, key in _ERRORS.items():
        kinds[name] = {node: 100 * error for node, error in _errors(opened, errors, key)}
    colors = [GradientItem(0, bgColor="#ffffff"), GradientItem(1, bgColor="#56B4E9")]
    found = [
        GraphNodeData({node: NodeDataResult(value) for node, value in values.items()}, name, gradient=colors)
        for name, values in kinds.items()
        if values
    ]
    engines = {one.node: NodeDataResult(one.engine, _COLORS[one.engine], "#ffffff") for one in rows}
    return [*found, GraphNodeData(engines, "engine")] if engines else found


def _errors(opened: Opened, errors: Mapping[str, Mapping[str, Any]], key: str) -> Iterator[tuple[str, float]]:
    names = {str(number): step.operator for number, step in enumerate(opened.steps) if not step.cores}
    names |= {one.node: one.facts.name for number, step in enumerate(opened.steps) for one in shown(number, step)}
    for node, name in names.items():
        error = _error(errors[name], key) if name in errors else None
        if error is not None:
            yield node, error


def _error(row: Mapping[str, Any], key: str) -> float | None:
    return float(row[key]["error"]) if row[key] else None
