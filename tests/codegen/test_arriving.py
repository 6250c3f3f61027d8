"""The first contractions of a network work on strips of the image while others are still on their way."""

from itertools import pairwise

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.codegen.graphs import graph_of
from tests.models.agreement import Case, random_inputs, relative_error
from tests.onnx_models import make_model
from tests.stages.networks import compile_model, run
from tvm_neuron.codegen.kernels.storage_dtypes import choose_dtypes
from tvm_neuron.codegen.overlap.arriving import start_as_it_arrives
from tvm_neuron.codegen.simplify import make_kernels
from tvm_neuron.codegen.stage import Stage
from tvm_neuron.codegen.steps import without
from tvm_neuron.hw import load_device
from tvm_neuron.schedule.kernel import Contraction, Kernel
from tvm_neuron.schedule.rule import load_rules
from tvm_neuron.sim import time_program


def _model(
    size: int = 48, batch: int = 1, stride: int = 2, pool: bool = False, turned: bool = False
) -> onnx.ModelProto:
    """As networks begin: a strided convolution of 3 channels (at first last), (a pool,) a depthwise one, two of 1x1."""
    rng = np.random.default_rng(5)
    shapes = {"w0": (16, 3, 3, 3), "w1": (16, 1, 3, 3), "w2": (8, 16, 1, 1), "w3": (48, 8, 1, 1)}
    weights = {name: rng.standard_normal(shape).astype(np.float32) / 3 for name, shape in shapes.items()}
    image = "x0" if turned else "x"
    same = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    nodes = [
        *([helper.make_node("Transpose", ["x"], [image], perm=[0, 3, 1, 2])] if turned else []),
        helper.make_node("Conv", [image, "w0"], ["c0"], name="first", strides=[stride, stride], **same),
        helper.make_node("Relu", ["c0"], ["r0"]),
        *([helper.make_node("MaxPool", ["r0"], ["p0"], strides=[2, 2], **same)] if pool else []),
        helper.make_node("Conv", ["p0" if pool else "r0", "w1"], ["c1"], name="depthwise", group=16, **same),
        helper.make_node("Relu", ["c1"], ["r1"]),
        helper.make_node("Conv", ["r1", "w2"], ["c2"], name="project"),
        helper.make_node("Conv", ["c2", "w3"], ["y"], name="expand"),
    ]
    shape = (batch, size, size + 8, 3) if turned else (batch, 3, size, size + 8)
    return make_model(nodes, {"x": shape}, ["y"], weights)


def _kernels(model: onnx.ModelProto, contractions: int) -> list[Kernel]:
    device = load_device("inf2")
    with without("fold_windows"):  # which makes three kernels of the second layer
        kernels, partition_of = make_kernels(graph_of(model), load_rules(), device)
    stage = Stage("network", kernels, partition_of, choose_dtypes(kernels), {}, {})
    return start_as_it_arrives(stage, device, contractions).kernels


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
@pytest.mark.parametrize(
    ("size", "batch", "stride", "pool", "turned"),
    [
        (48, 1, 2, False, False),
        (48, 1, 2, True, False),
        (47, 1, 1, False, False),
        (24, 3, 2, False, False),
        (24, 2, 2, True, False),
        (72, 1, 2, False, True),
        (150, 1, 2, True, True),
        (24, 2, 2, False, True),
    ],
)
def test_as_onnxruntime(size: int, batch: int, stride: int, pool: bool, turned: bool, chip: str) -> None:
    model = _model(size, batch, stride, pool, turned)
    case = Case(model, random_inputs(model))
    found = run(compile_model(model, f"neuron/{chip}"), case.inputs, "strict")["y"]
    assert relative_error(found, case.exact["y"]) < case.bounds["y"]


@pytest.mark.parametrize(("pool", "turned"), [(False, False), (True, False), (True, True)])
def test_strips_of_each_kernel_make_the_same_as_the_whole(pool: bool, turned: bool) -> None:
    """Each element that a kernel wrote is written once, and sums of products stay what they were."""
    model = _model(112, pool=pool, turned=turned)

    def elements(kernels: list[Kernel]) -> dict[str, int]:
        found: dict[str, int] = {}
        for kernel in kernels:
            count = kernel.channel.extent * int(np.prod([axis.extent for axis in kernel.free]))
            found[kernel.out.name] = found.get(kernel.out.name, 0) + count
        return found

    assert elements(_kernels(model, 4)) == elements(_kernels(model, 0))


def test_the_array_starts_before_the_image_is_there_and_layers_take_turns() -> None:
    kernels = _kernels(_model(112), 2)
    moves = [n for n, kernel in enumerate(kernels) if kernel.by_dma]
    sums = [n for n, kernel in enumerate(kernels) if isinstance(kernel.root, Contraction)]
    assert sum(n < moves[-1] for n in sums) > len(sums) // 3
    first, depthwise = (kernels[n].out for n in (sums[0], sums[2]))
    assert first is not depthwise
    between = [kernels[n].out for n in sums if kernels[n].out in (first, depthwise)]
    assert all(a is not b for a, b in pairwise(between[1:-1]))  # the second layer stays a strip behind


def test_rows_of_channels_last_are_put_in_order_before_the_array_starts() -> None:
    kernels = _kernels(_model(112, turned=True), 2)
    orders = [n for n, kernel in enumerate(kernels) if kernel.out.name.endswith(".rows")]
    through = [n for n, kernel in enumerate(kernels) if kernel.out.kind == "scratch"]
    sums = [n for n, kernel in enumerate(kernels) if isinstance(kernel.root, Contraction)]
    assert len(orders) == len(through) == 4  # 32 of 112 rows each
    assert orders[-1] < through[0] < sums[0] < through[1]
    assert through[-2] < sums[-2]


def test_a_large_first_layer_takes_less_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def time_ps() -> int:
        found = compile_model(_model(224), "neuron/inf2")
        return time_program(found.program, found.device).total_ps

    in_strips = time_ps()
    monkeypatch.setattr("tvm_neuron.codegen.compile_stage._MOST_ARRIVING", 0)
    assert in_strips < 0.95 * time_ps()


def test_batches_come_image_by_image() -> None:
    kernels = _kernels(_model(48, batch=3), 1)
    firsts = [k for k in kernels if isinstance(k.root, Contraction) and k.origins[0].name == "first"]
    assert len(firsts) == 3
