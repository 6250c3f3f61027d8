"""Precisions by name, and what they make of contractions: their dtype, cast copies, refusals."""

import re

import numpy as np
import pytest
from onnx import helper

from tests.codegen.graphs import graph_of
from tests.codegen.on_core import on_core
from tests.onnx_models import make_model
from tests.stages.networks import residual_network
from tvm_neuron.build import BuildOptions
from tvm_neuron.codegen.kernels.storage_dtypes import SMALL_ELEMS, choose_dtypes
from tvm_neuron.codegen.precision import FP32_CAST, Precisions
from tvm_neuron.codegen.simplify import make_kernels
from tvm_neuron.errors import OptionError, PrecisionWarning, UnschedulableError
from tvm_neuron.hw import load_device
from tvm_neuron.schedule.kernel import Contraction, Kernel
from tvm_neuron.schedule.rule import load_rules
from tvm_neuron.schedule.tensor import Tensor


def kernels_in(precisions: Precisions, device: str = "inf2") -> list[Kernel]:
    return make_kernels(graph_of(residual_network()), load_rules(), load_device(device), precisions)[0]


def operands(kernels: list[Kernel]) -> list[Tensor]:
    return [kernel.root.data for kernel in kernels if isinstance(kernel.root, Contraction)]


@pytest.mark.parametrize("mode", FP32_CAST)
def test_every_operand_is_kept_as_it_is_multiplied(mode: str) -> None:
    kernels = kernels_in(Precisions(mode))
    dtypes = choose_dtypes(kernels, Precisions(mode))
    temporary = [tensor for tensor in operands(kernels) if tensor.kind == "temp"]
    assert temporary
    assert {dtypes[tensor] for tensor in temporary} == {FP32_CAST[mode].multiplied}
    others = [t for t in dtypes if t.kind == "temp" and t not in temporary and t.elems > SMALL_ELEMS]
    assert {dtypes[tensor] for tensor in others} <= {FP32_CAST[mode].stored}


def test_one_copy_for_the_operand_that_others_read() -> None:
    plain, cast = kernels_in(Precisions("all")), kernels_in(Precisions("matmult"))
    assert len(cast) == len(plain) + 1
    assert [tensor.name.endswith(".bfloat16") for tensor in operands(cast)].count(True) == 1


def test_a_tensor_that_is_multiplied_in_two_dtypes_has_a_copy() -> None:
    mixed = Precisions("matmult", {"conv1": "none"})
    kernels = kernels_in(mixed)
    dtypes = choose_dtypes(kernels, mixed)
    for kernel in kernels:
        if isinstance(kernel.root, Contraction) and kernel.root.data.kind == "temp":
            assert dtypes[kernel.root.data] == kernel.root.dtype
    assert {k.root.dtype for k in kernels if isinstance(k.root, Contraction)} == {"float32", "bfloat16"}


def test_an_array_without_float32() -> None:
    with pytest.raises(UnschedulableError, match=r"conv0.*: the PE array of inf1 multiplies bfloat16 and float16, and"):
        kernels_in(Precisions("none"), "inf1")


def test_the_last_pattern_that_fits_counts() -> None:
    precisions = Precisions("all", {"layer*": "none", "layer3/*": "matmult"})
    assert [precisions.mode_of(name) for name in ("stem", "layer2", "layer3/conv")] == ["all", "none", "matmult"]


def test_unknown_modes() -> None:
    with pytest.raises(OptionError, match="fp32_cast is 'half', which is no precision: take one of all, all-fp16"):
        BuildOptions(fp32_cast="half")
    with pytest.raises(OptionError, match=r"fp32_cast of 'conv\*' is 'half'"):
        BuildOptions(fp32_cast_of={"conv*": "half"})


def test_weights_beyond_float16_are_told() -> None:
    weights = np.float32([[1, 2], [3, 1e5]])
    model = make_model([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": [1, 2]}, ["y"], {"w": weights})
    x = np.float32([[1, 1]])
    said = "MatMul 'MatMul_0': 1 of its 4 weights become infinite, for float16 ends at 65504 and the largest is 100000:"
    with pytest.warns(PrecisionWarning, match=re.escape(said)):
        (found,) = on_core(model, {"x": x}, "inf1", "matmult-fp16")
    np.testing.assert_array_equal(found, [[4, np.inf]])
    np.testing.assert_allclose(on_core(model, {"x": x}, "inf1", "all")[0], x @ weights, rtol=2**-7)
