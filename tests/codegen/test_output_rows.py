"""Tiles of rows that follow one another in the last dimension of an output, as a detector's scores do."""

from dataclasses import replace

import numpy as np
import onnxruntime
import pytest

from tests.codegen.detectors import CLASSES, inputs_of, scores
from tests.codegen.graphs import graph_of
from tests.codegen.interpreter import run_kernels
from tvm_neuron.codegen.kernels.storage_dtypes import choose_dtypes
from tvm_neuron.codegen.overlap.part import Part, find_dependences
from tvm_neuron.codegen.simplify import make_kernels
from tvm_neuron.codegen.tiles.group import group_of
from tvm_neuron.codegen.tiles.rows import Group
from tvm_neuron.codegen.tiles.tiled_dims import has_whole_rows
from tvm_neuron.codegen.tiles.unroll import unroll
from tvm_neuron.hw import load_device
from tvm_neuron.schedule.expr import Axis
from tvm_neuron.schedule.kernel import Contraction, Kernel
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.rule import load_rules
from tvm_neuron.schedule.tensor import Tensor

LEVELS = ((12, 16), (6, 8))
MODEL = scores(*LEVELS)


def _level_by_level(kernels: list[Kernel], partition_of: dict[Tensor, int]) -> list[Kernel]:
    """What comes after the last convolution right behind the level that it needs, what writes outputs at once."""
    parts = [Part(kernel, number, 0, {}) for number, kernel in enumerate(kernels)]
    find_dependences(parts, partition_of)
    last = max(number for number, kernel in enumerate(kernels) if isinstance(kernel.root, Contraction))
    places: list[tuple[int, ...]] = [(number,) for number in range(len(kernels))]
    for part in parts[last + 1 :]:
        after = max((places[other.number] for other in part.after), default=(last,))
        places[part.number] = (*(after if part.kernel.out.kind == "output" else after[:1]), part.number)
    return [kernels[number] for number in sorted(range(len(kernels)), key=places.__getitem__)]


class Detector:
    """Its kernels, level after level, without the outputs that DMA stores."""

    def __init__(self) -> None:
        self.graph = graph_of(MODEL)
        kernels, self.partition_of = make_kernels(self.graph, load_rules(), load_device("inf1"))
        self.kernels = _level_by_level(kernels, self.partition_of)
        self.dtypes = choose_dtypes(self.kernels)
        self.scores = next(t for t in self.graph.outputs if t.shape[1] == CLASSES)

    def level(self, number: int) -> range:
        """The steps from its convolution to where its scores are whole and what else follows is not yet stored."""
        start = [n for n, k in enumerate(self.kernels) if isinstance(k.root, Contraction)][number]
        end = [n for n, k in enumerate(self.kernels) if k.by_dma and k.out in self.graph.outputs][number]
        steps = range(start, end)
        return steps if not self.kernels[end - 1].out.name.endswith(".by1") else steps[:-1]

    def group(self, number: int, dim: int = 1, kernels: list[Kernel] | None = None) -> Group | None:
        """A level's kernels (or others in their place) as a group."""
        steps = self.level(number)
        part = kernels or self.kernels[steps.start : steps.stop]
        later = {t for k in self.kernels[steps.stop :] for t in k.sources()}
        in_dram = {*self.graph.inputs, *self.graph.outputs}
        before = self.kernels[: steps.start]
        return group_of(tuple(part), dim, before, later, in_dram, self.partition_of, self.dtypes)


@pytest.mark.parametrize("tiles", [2, 3, 5, 12])
@pytest.mark.parametrize("number", [0, 1])
def test_numbers_agree_with_onnxruntime(number: int, tiles: int) -> None:
    detector = Detector()
    group = detector.group(number)
    assert group is not None
    found = unroll(group, min(tiles, group.fewest_rows), frozenset({detector.scores}))
    assert found is not None
    assert group.fewest_rows == LEVELS[number][0]
    steps = detector.level(number)
    kernels = [*detector.kernels[: steps.start], *found.kernels, *detector.kernels[steps.stop :]]
    inputs = inputs_of(MODEL)
    wanted = onnxruntime.InferenceSession(MODEL.SerializeToString()).run(None, inputs)
    actual = run_kernels(kernels, detector.partition_of | found.partition_of, detector.graph, inputs)
    for output, exact in zip(detector.graph.outputs, wanted, strict=True):
        np.testing.assert_allclose(actual[output], exact, rtol=1e-4, atol=1e-5)  # ONNX Runtime's float32


def test_a_level_brings_nothing_of_the_ones_before_it() -> None:
    detector = Detector()
    group = detector.group(1)
    assert group is not None
    assert group.begun == {}
    found = unroll(group, 3, frozenset({detector.scores}))
    assert found is not None
    assert not any(detector.scores in kernel.sources() for kernel in found.kernels)
    stores = [kernel for kernel in found.kernels if kernel.out is detector.scores]
    assert len(stores) == 3
    assert all(kernel.by_dma for kernel in stores)


def test_images_are_no_rows() -> None:
    assert Detector().group(0, dim=0) is None


def test_what_dma_stores_is_not_cut() -> None:
    detector = Detector()
    kernels = [detector.kernels[n] for n in detector.level(0)]
    stored = [replace(k, by_dma=True) if k.out is detector.scores else k for k in kernels]
    assert detector.group(0, kernels=stored) is None


def test_an_output_that_two_kernels_write_is_not_cut() -> None:
    detector = Detector()
    kernels = [detector.kernels[n] for n in detector.level(0)]
    twice = [part for k in kernels for part in ([k, replace(k)] if k.out is detector.scores else [k])]
    assert detector.group(0, kernels=twice) is None


def test_positions_on_the_partitions_are_not_cut() -> None:
    detector = Detector()
    detector.partition_of[detector.scores] = 2
    assert detector.group(0) is None


def test_rows_are_whole_where_other_axes_count_within_a_row() -> None:
    row, column = Axis("row", 7), Axis("column", 5)
    assert has_whole_rows(Linear(3, {row: 5, column: 1}))
    assert not has_whole_rows(Linear(0, {row: 4, column: 1}))  # the last column is the next row's first
    assert not has_whole_rows(Linear(0, {row: 1}))
    assert not has_whole_rows(Linear(4))
