"""call_blocks: what TVM has no kernel for is an error, with the operator's name."""

import pytest
from tvm import relax

from tvm_neuron.codegen.call_blocks import call_blocks
from tvm_neuron.errors import CompileError
from tvm_neuron.program import Origin


def test_what_its_legalisation_gives_back_has_no_kernel() -> None:
    """As a transposed convolution with its channels last, which was read without end."""
    data = relax.Var("x", relax.TensorType((1, 4, 4, 3), "float32"))
    weight = relax.Var("w", relax.TensorType((3, 3, 2, 3), "float32"))
    call = relax.op.nn.conv2d_transpose(data, weight, data_layout="NHWC", kernel_layout="HWOI")
    normal = relax.BlockBuilder().normalize(call)
    with pytest.raises(CompileError, match=r"TVM has no kernel of relax\.nn\.conv2d_transpose with these attributes"):
        call_blocks(normal, [None, None], "y", Origin("", "conv"))
