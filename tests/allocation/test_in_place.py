"""in_place: a sum lies where its last operand lay, and nothing else that is read elsewhere or later does."""

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.codegen.graphs import graph_of
from tests.models.agreement import Case, random_inputs, relative_error
from tests.onnx_models import make_model
from tests.stages.networks import compile_model, run
from tvm_neuron.allocation.memory_plan import MemoryPlan, plan_within
from tvm_neuron.codegen.kernels.storage_dtypes import choose_dtypes
from tvm_neuron.codegen.simplify import make_kernels
from tvm_neuron.hw import load_device
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.rule import load_rules


def _block(left: str) -> onnx.ModelProto:
    """y = conv(left + conv(conv(r))) with r = relu(conv(x)); `left` is r or r transposed."""
    rng = np.random.default_rng(3)
    weights = {f"w{n}": rng.standard_normal((32, 32, 1, 1)).astype(np.float32) / 6 for n in range(4)}
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["c0"]),
        helper.make_node("Relu", ["c0"], ["r"]),
        helper.make_node("Transpose", ["r"], ["turned"], perm=[0, 1, 3, 2]),
        helper.make_node("Conv", ["r", "w1"], ["c1"]),
        helper.make_node("Conv", ["c1", "w2"], ["c2"]),
        helper.make_node("Add", ["c2", left], ["s"]),
        helper.make_node("Conv", ["s", "w3"], ["y"]),
    ]
    used = [node for node in nodes if node.output[0] != "turned" or left == "turned"]
    return make_model(used, {"x": (1, 32, 12, 12)}, ["y"], weights)


def _plan(model: onnx.ModelProto) -> tuple[list[Kernel], MemoryPlan]:
    kernels, partition_of = make_kernels(graph_of(model), load_rules(), load_device("inf1"))
    outside = {tensor for k in kernels for tensor in k.tensors if tensor.kind != "temp"}
    made = plan_within(kernels, partition_of, choose_dtypes(kernels), outside, 0, 64 << 10, load_device("inf1"))
    assert made is not None
    return kernels, made


def test_a_sum_takes_the_memory_of_its_last_operand() -> None:
    kernels, plan = _plan(_block("r"))
    ((out, operand),) = ((kernel.out, tensor) for kernel in kernels for tensor in kernel.matched)
    assert plan.offsets[out] == plan.offsets[operand]


def test_what_is_read_at_other_places_keeps_its_memory() -> None:
    kernels, plan = _plan(_block("turned"))
    for kernel in kernels:
        for tensor in {*kernel.sources()} & plan.offsets.keys() - {*kernel.matched, kernel.out}:
            if kernel.out in plan.offsets:
                assert plan.offsets[kernel.out] != plan.offsets[tensor]


@pytest.mark.parametrize("left", ["r", "turned"])
@pytest.mark.parametrize("mode", ["nest", "strict"])
def test_sums_in_place_as_onnxruntime(left: str, mode: str) -> None:
    case = Case(_block(left), random_inputs(_block(left)))
    found = run(compile_model(case.model, "neuron/inf1"), case.inputs, mode)["y"]
    assert relative_error(found, case.exact["y"]) < case.bounds["y"]
