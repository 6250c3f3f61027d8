"""Parts between CPU operators are weighed by time: what they gain against what carrying their tensors costs."""

import re
from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import helper
from tvm import relax

import tvm_neuron
from tests.onnx_models import Arrays, make_model
from tvm_neuron import relay
from tvm_neuron.build import BuildOptions
from tvm_neuron.codegen.worth import carry_time_us, weigher
from tvm_neuron.frontend import from_onnx, normalize
from tvm_neuron.frontend.origin import origin_of
from tvm_neuron.hw import load_device
from tvm_neuron.neff import Placement
from tvm_neuron.partition import Match, Refusal, Verdict, partition
from tvm_neuron.partition.constraints import IsConstant
from tvm_neuron.partition.spans import SpansOf

RNG = np.random.default_rng(0)
MOVED = re.compile(
    r"moved to the CPU: (its operator takes|the \d+ operators of its part take) ([\d.]+) us there(.*), and "
)


def on_cpu(call: relax.Call, _is_constant: IsConstant, _spans_of: SpansOf) -> Verdict:
    """Operators called cpu1, cpu2, ... stand for what a NeuronCore can't run."""
    return Refusal("it can't") if origin_of(call).name.startswith("cpu") else Match()


def place(model: onnx.ModelProto, options: BuildOptions | None = None) -> tuple[dict[str, Placement], int]:
    """The row of each operator, and the number of subgraphs."""
    mod, params = from_onnx(model)
    part = partition(normalize(mod, params), on_cpu, weigher(options or BuildOptions()))
    return {row.name: row for row in part.placements}, len(part.mod.get_global_vars()) - 1


def chain(steps: Sequence[tuple[str, str]], shape: Sequence[int], weights: Arrays | None = None) -> onnx.ModelProto:
    """Operators one after the other, as (name, type)."""
    nodes, last = [], "x"
    for name, op in steps:
        more = {"Reshape": ["shape"], "Conv": ["w"]}.get(op, [])
        pads = {"pads": [1, 1, 1, 1]} if op == "Conv" else {}
        nodes.append(helper.make_node(op, [last, *more], [name], name=name, **pads))
        last = name
    return make_model(nodes, {"x": shape}, [last], weights)


TO_ROW = {"shape": np.array([1, -1])}
CONV = {"w": RNG.standard_normal((64, 64, 3, 3)).astype(np.float32)}


@pytest.mark.parametrize("op", ["Reshape", "Relu"])
def test_a_light_operator_between_cpu_operators_stays_with_them(op: str) -> None:
    rows, subgraphs = place(chain([("cpu1", "Exp"), ("light", op), ("cpu2", "Exp")], (8, 8), TO_ROW))
    assert subgraphs == 0
    found = MOVED.match(rows["light"].reason)
    assert found is not None
    # 64 elements at an operation a nanosecond; a call, and 256 bytes each way at 16 GB/s
    assert (found[1], float(found[2]), found[3]) == ("its operator takes", 0.1, "")
    assert rows["light"].reason.endswith("carrying its tensors to the NeuronCore and back costs 10.0 us")
    assert rows["cpu1"].reason == "it can't"


def test_it_goes_to_the_core_with_a_neighbour_there() -> None:
    steps = [("cpu1", "Exp"), ("conv", "Conv"), ("light", "Reshape"), ("cpu2", "Exp")]
    rows, subgraphs = place(chain(steps, (1, 64, 32, 32), CONV | TO_ROW))
    assert subgraphs == 1
    assert rows["conv"].where == rows["light"].where == "neuroncore"


def test_arithmetic_that_gains_more_than_it_costs_stays_on_the_core() -> None:
    """Of 32768 elements each operator takes 33 us on the CPU, and carrying them there and back 26 us."""
    few = [("cpu1", "Exp"), ("a", "Tanh"), ("cpu2", "Exp")]
    many = [few[0], *((f"t{i}", "Tanh") for i in range(8)), few[-1]]
    rows, _ = place(chain(few, (1, 128, 16, 16)))
    assert rows["a"].where == "cpu"
    rows, subgraphs = place(chain(many, (1, 128, 16, 16)))
    assert subgraphs == 1
    assert rows["t0"].where == "neuroncore"


def test_the_reason_names_both_times_where_it_was_timed() -> None:
    steps = [("cpu1", "Exp"), ("a", "Tanh"), ("b", "Tanh"), ("cpu2", "Exp")]
    rows, _ = place(chain(steps, (96, 128)))
    found = MOVED.match(rows["a"].reason)
    assert found is not None
    assert found[1] == "the 2 operators of its part take"
    assert re.fullmatch(r" against [\d.]+ us on the NeuronCore", found[3])


def test_what_a_cpu_operator_does_not_enclose_is_not_moved() -> None:
    rows, _ = place(chain([("first", "Tanh"), ("cpu1", "Exp"), ("last", "Tanh")], (8, 8)))
    assert rows["first"].where == rows["last"].where == "neuroncore"
    rows, subgraphs = place(chain([("a", "Reshape"), ("b", "Relu")], (8, 8), TO_ROW))
    assert (rows["a"].where, subgraphs) == ("neuroncore", 1)


def test_a_move_at_the_edge_stays_with_its_cpu_operator() -> None:
    rows, subgraphs = place(chain([("cpu1", "Exp"), ("light", "Reshape")], (8, 8), TO_ROW))
    assert (rows["light"].where, subgraphs) == ("cpu", 0)


def test_the_user_may_say_how_small() -> None:
    model = chain([("cpu1", "Exp"), ("a", "Tanh"), ("b", "Tanh"), ("cpu2", "Exp"), ("c", "Tanh")], (8, 8))
    rows, subgraphs = place(model, BuildOptions(minimum_segment_size=1))
    assert (subgraphs, rows["a"].where) == (2, "neuroncore")
    rows, subgraphs = place(model, BuildOptions(minimum_segment_size=2))
    assert (subgraphs, rows["a"].where) == (1, "neuroncore")
    assert rows["c"].reason == "moved to the CPU: a part of 1 operator, and minimum_segment_size asks for 2"


def test_nothing_is_weighed_where_the_cpu_is_forbidden() -> None:
    assert weigher(BuildOptions(must_compile=True)) is None


def test_what_carrying_costs() -> None:
    assert carry_time_us(16_000_000, load_device("inf1")) == pytest.approx(10 + 1000)


def test_the_user_may_keep_operators_on_the_cpu() -> None:
    model = make_model(
        [helper.make_node("Tanh", ["x"], ["t"], name="body/a"), helper.make_node("Tanh", ["t"], ["y"], name="head/b")],
        {"x": [8, 8]},
        ["y"],
    )
    mod, params = relay.frontend.from_onnx(model)
    library = relay.build(mod, params=params, options=BuildOptions(on_cpu=("neck", "head/*")))
    rows = {row.name: row for row in tvm_neuron.report(library).placement}
    assert (rows["body/a"].where, rows["head/b"].where) == ("neuroncore", "cpu")
    assert rows["head/b"].reason == "kept on the CPU: on_cpu has 'head/*'"
