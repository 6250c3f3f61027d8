"""Convolutions of few channels read their window's rows and columns at once: few matmuls, each row from DRAM once."""

from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.codegen.graphs import graph_of
from tests.codegen.interpreter import run_graph, run_kernels
from tests.models.agreement import Case, random_inputs, relative_error
from tests.onnx_models import make_model
from tests.stages.networks import compile_model, run
from tvm_neuron.codegen.emit_stage import check_inside
from tvm_neuron.codegen.simplify import make_kernels
from tvm_neuron.codegen.steps import without
from tvm_neuron.errors import InternalError
from tvm_neuron.hw import Device, load_device
from tvm_neuron.schedule.kernel import Contraction, Kernel
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.rule import load_rules
from tvm_neuron.sim import time_program


def _model(
    kernel: tuple[int, int], stride: int = 1, pads: int = 0, channels: int = 3, size: int = 23, batch: int = 1
) -> onnx.ModelProto:
    weights = np.random.default_rng(3).standard_normal((24, channels, *kernel)).astype(np.float32)
    node = helper.make_node("Conv", ["x", "w"], ["y"], strides=[stride, stride], pads=[pads] * 4)
    return make_model([node], {"x": (batch, channels, size, size + 4)}, ["y"], {"w": weights / weights[0].size ** 0.5})


def _convolution(model: onnx.ModelProto, device: Device) -> Kernel:
    kernels, _ = make_kernels(graph_of(model), load_rules(), device)
    return next(kernel for kernel in kernels if isinstance(kernel.root, Contraction))


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
@pytest.mark.parametrize(
    ("kernel", "stride", "pads", "channels", "batch"),
    [
        ((7, 7), 2, 3, 3, 1),
        ((7, 7), 2, 3, 3, 3),
        ((3, 3), 2, 1, 3, 2),
        ((3, 3), 1, 1, 3, 1),
        ((3, 3), 1, 0, 3, 1),  # no border
        ((2, 5), 3, 2, 1, 1),  # a stride longer than the window
        ((11, 11), 4, 2, 3, 1),
        ((5, 2), 1, 4, 16, 1),  # no room for a second column
        ((4, 3), 2, 5, 2, 1),  # borders beyond the window
        ((4, 4), 4, 0, 3, 1),  # patches: no copy ends, so that nothing is left to be zero
    ],
)
def test_as_onnxruntime(kernel: tuple[int, int], stride: int, pads: int, channels: int, batch: int, chip: str) -> None:
    model = _model(kernel, stride, pads, channels, batch=batch)
    case = Case(model, random_inputs(model))
    found = run(compile_model(model, f"neuron/{chip}"), case.inputs, "strict")["y"]
    assert relative_error(found, case.exact["y"]) < case.bounds["y"]


@pytest.mark.parametrize("side", [2, 4, 8, 16])
def test_patches_write_nothing_behind_their_image(side: int) -> None:
    """They wrote a zero there, over whatever the memory plan had put there, in silence."""
    for chip in ("inf1", "inf2"):
        kernels, _ = make_kernels(graph_of(_model((side, side), side, size=64)), load_rules(), load_device(chip))
        assert any(".packed" in kernel.out.name for kernel in kernels)
        for kernel in kernels:
            check_inside(kernel)


def test_a_kernel_that_writes_outside_of_its_tensor_is_a_defect() -> None:
    kernel = _convolution(_model((3, 3)), load_device("inf2"))
    check_inside(kernel)
    moved = replace(kernel, out_maps=(*kernel.out_maps[:-1], kernel.out_maps[-1] + Linear(1)))
    with pytest.raises(InternalError, match=r"a kernel of 'Conv.*' writes \[.*\(1, 25\)\] of y\[1, 24, 21, 25\]"):
        check_inside(moved)


def test_a_window_of_7_by_7_takes_three_matmuls() -> None:
    """Two would need a fourth copy of the rows, which takes DMA longer than the PE array gains."""
    root = _convolution(_model((7, 7), 2, 3, size=224), load_device("inf2")).root
    assert isinstance(root, Contraction)
    assert root.weights.shape == (3 * 7 * 3, 3, 24)  # rows, every third column
    assert np.count_nonzero(root.weights) == 3 * 7 * 7 * 24


def test_a_window_of_3_by_3_takes_one_matmul() -> None:
    root = _convolution(_model((3, 3), 1, 1, size=64), load_device("inf2")).root
    assert isinstance(root, Contraction)
    assert root.weights.shape == (27, 24)


def test_rows_come_from_dram_once() -> None:
    model = _model((7, 7), 2, 3, size=64)
    compiled = compile_model(model, "neuron/inf2")
    traffic = time_program(compiled.program, compiled.device).dram_bytes_by_kind
    assert traffic["input"] == 3 * 64 * 68 * 4


def test_images_that_run_in_tiles_of_rows_are_packed_by_rows_alone() -> None:
    small = replace(load_device("inf2"), sbuf_bytes_per_partition=4 << 10)
    root = _convolution(_model((7, 7), 2, 3, size=64), small).root
    assert isinstance(root, Contraction)
    assert root.weights.shape == (3 * 7, 7, 24)


def test_images_that_run_in_tiles_of_rows_have_the_columns_of_a_small_window_packed_too() -> None:
    small = replace(load_device("inf2"), sbuf_bytes_per_partition=4 << 10)
    root = _convolution(_model((3, 3), 1, 1, size=64), small).root
    assert isinstance(root, Contraction)
    assert root.weights.shape == (27, 24)
    assert len(root.maps) == 4, "rows are a dimension of their own, to be cut"


def test_packed_rows_are_copied_on_where_the_array_is_the_bottleneck() -> None:
    """Of images that run in tiles: 7x7 over 21 rows takes two matmuls, not seven. POOL makes three copies."""
    device = replace(load_device("inf1"), sbuf_bytes_per_partition=16 << 10, pool_clock_hz=10**10)
    graph = graph_of(_model((7, 7), 2, 3, size=64))
    with without("choose_routes"):  # so quick an engine would put the image into its padding, too
        kernels, partition_of = make_kernels(graph, load_rules(), device)
    (root,) = (kernel.root for kernel in kernels if isinstance(kernel.root, Contraction))
    assert root.weights.shape == (128, 2, 24)
    x = {"x": np.random.default_rng(1).standard_normal((1, 3, 64, 68))}
    (y,) = graph.outputs
    found, wanted = run_kernels(kernels, partition_of, graph, x)[y], run_graph(graph, x)[y]
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)  # float64 both times
