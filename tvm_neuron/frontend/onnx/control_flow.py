"""If, Loop and Scan whose course is known at import: the branch taken, the iterations one after another."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import helper

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.onnx.sequences import MakeNode
from tvm_neuron.frontend.onnx.values import Known, Value, dtype_of, shape_of

MOST_ITERATIONS = 4096
_MOST_OPERATORS = 50_000  # of all rounds of a loop that is written out

CONTROL_FLOW = ("If", "Loop", "Scan")


class NotUnrolledError(ModelError):
    """Only a run tells when a loop ends, or it has too many rounds."""


RunBody = Callable[[onnx.GraphProto, list[Value], str], list[Value]]
"""(graph, values of its inputs, suffix of its operators' names) to the values of its outputs."""


def graph_of(node: onnx.NodeProto, name: str) -> onnx.GraphProto:
    """The subgraph in an attribute."""
    return next(helper.get_attribute_value(each) for each in node.attribute if each.name == name)


def select_branch(node: onnx.NodeProto, operands: list[Value], run: RunBody, make: MakeNode) -> list[Value]:
    """The branch that is taken; where only the data decide, both, and a selection between their results."""
    if isinstance(operands[0], Known):
        taken = bool(operands[0].array.reshape(-1)[0])
        return run(graph_of(node, "then_branch" if taken else "else_branch"), [], "")
    then_values, else_values = (run(graph_of(node, name), [], f".{name}") for name in ("then_branch", "else_branch"))
    return [_selected(operands[0], one, other, make) for one, other in zip(then_values, else_values, strict=True)]


def _selected(condition: Value, one: Value, other: Value, make: MakeNode) -> Value:
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [_selected(condition, *both, make) for both in zip(one, other, strict=True)]
    if isinstance(one, list) or isinstance(other, list) or one is None or other is None:
        raise ModelError("its branch is chosen by data and gives sequences or optionals: no static program does that")
    if shape_of(one) is None or shape_of(one) != shape_of(other) or dtype_of(one) != dtype_of(other):
        raise ModelError(
            f"its branch is chosen by data, and the branches give {dtype_of(one)}{shape_of(one)} and "
            f"{dtype_of(other)}{shape_of(other)}: shapes must be known at compile time"
        )
    return make("Where", [condition, one, other])


def most_rounds(operators: int) -> int:
    """As many of so many operators are written out."""
    return min(MOST_ITERATIONS, _MOST_OPERATORS // max(1, operators))


def unroll_loop(node: onnx.NodeProto, operands: list[Value], run: RunBody, make: MakeNode) -> list[Value]:
    """Every iteration in turn, while the condition, known each time, holds.

    Raises:
        NotUnrolledError: the loop has to run as one, and why.
    """
    body = graph_of(node, "body")
    limit = operands[0] if operands else None
    if limit is not None and not isinstance(limit, Known):
        raise NotUnrolledError("the number of its rounds depends on data")
    trips = limit.array.reshape(()).item() if limit is not None else None
    condition = operands[1] if len(operands) > 1 else None
    carried = list(operands[2:])
    scanned: list[list[Value]] = [[] for _ in body.output[1 + len(carried) :]]
    done = 0
    most = most_rounds(len(body.node))
    too_many = NotUnrolledError(f"it has more than {most} rounds of {len(body.node)} operators, too many to write out")
    if trips is not None and trips > most and condition is None:
        raise too_many
    while (trips is None or done < trips) and _holds(condition):
        if done == most:
            raise too_many
        inputs = [Known(np.array(done, np.int64)), condition if condition is not None else Known(np.array(True))]
        results = run(body, [*inputs, *carried], f".{done}")
        given_condition = condition is not None or trips is None
        condition = results[0] if given_condition or isinstance(results[0], Known) else None
        carried = results[1 : 1 + len(carried)]
        for items, item in zip(scanned, results[1 + len(carried) :], strict=True):
            items.append(item)
        done += 1
    return carried + [_stack(items, 0, False, make) for items in scanned]


def _holds(condition: Value) -> bool:
    if condition is None:
        return True
    if not isinstance(condition, Known):
        raise NotUnrolledError("its end depends on data")
    return bool(condition.array.reshape(-1)[0])


def unroll_scan(node: onnx.NodeProto, operands: list[Value], run: RunBody, make: MakeNode, opset: int) -> list[Value]:
    """Every step in turn; before opset 9 each batch entry on its own, with the lengths as first operand."""
    if opset >= 9:
        return _scan(node, operands, run, make, "")
    lengths, *values = operands
    shape = shape_of(values[-1])
    if shape is None or (lengths is not None and not isinstance(lengths, Known)):
        raise ModelError("its lengths are known at run time only")
    batches = []
    for entry in range(shape[0]):
        index = Known(np.array(entry, np.int64))
        sliced = [make("Gather", [value, index], axis=0) for value in values]
        if lengths is not None and int(lengths.array[entry]) != shape[1]:
            raise ModelError("its sequences have different lengths")
        batches.append(_scan(node, sliced, run, make, f".batch{entry}"))
    return [_stack(list(items), 0, False, make) for items in zip(*batches, strict=True)]


def _scan(node: onnx.NodeProto, operands: list[Value], run: RunBody, make: MakeNode, suffix: str) -> list[Value]:
    body = graph_of(node, "body")
    attributes: dict[str, Any] = {each.name: helper.get_attribute_value(each) for each in node.attribute}
    count = attributes["num_scan_inputs"]
    states, sources = list(operands[: len(operands) - count]), operands[len(operands) - count :]
    axes = attributes.get("scan_input_axes", [0] * count)
    backwards = attributes.get("scan_input_directions", attributes.get("directions", [0] * count))
    outs = len(body.output) - len(states)
    out_axes = attributes.get("scan_output_axes", [0] * outs)
    out_backwards = attributes.get("scan_output_directions", [0] * outs)
    shape = shape_of(sources[0])
    if shape is None:
        raise ModelError("the length of what it scans is not known at compile time")
    steps = shape[axes[0]]
    if steps > MOST_ITERATIONS:
        raise ModelError(f"it runs {steps} times, too often to be unrolled (at most {MOST_ITERATIONS})")
    scanned: list[list[Value]] = [[] for _ in range(outs)]
    for step in range(steps):
        parts = [
            make("Gather", [source, Known(np.array(steps - 1 - step if back else step, np.int64))], axis=axis)
            for source, axis, back in zip(sources, axes, backwards, strict=True)
        ]
        results = run(body, [*states, *parts], f"{suffix}.{step}")
        states = results[: len(states)]
        for items, item in zip(scanned, results[len(states) :], strict=True):
            items.append(item)
    stacked = zip(scanned, out_axes, out_backwards, strict=True)
    return states + [_stack(items, axis, bool(back), make) for items, axis, back in stacked]


def _stack(items: list[Value], axis: int, backwards: bool, make: MakeNode) -> Value:
    if not items:
        raise ModelError("it runs not once, so that the shapes of its outputs are unknown")
    ordered = items[::-1] if backwards else items
    rank = len(shape_of(ordered[0]) or ()) + 1
    where = Known(np.array([axis % rank], np.int64))
    widened = [make("Unsqueeze", [item, where]) for item in ordered]
    return make("Concat", widened, axis=axis % rank) if len(widened) > 1 else widened[0]
