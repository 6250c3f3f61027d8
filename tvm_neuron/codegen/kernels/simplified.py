"""simplified: the arithmetic of a kernel in as few instructions as the engines need for it."""

import numpy as np

from tvm_neuron.codegen.kernels.affine import fold_scale
from tvm_neuron.codegen.kernels.exact_constants import keep_bits
from tvm_neuron.codegen.kernels.functions import use_functions
from tvm_neuron.codegen.kernels.leaky_relu import use_maxima
from tvm_neuron.codegen.kernels.truths import simplify_truths
from tvm_neuron.schedule.kernel import Kernel


def simplified(kernel: Kernel) -> Kernel:
    """The kernel, as it is if it only moves data.

    Integers come first, before arithmetic on them is changed; then scales, ACT's functions, and what is none of them.
    """
    if kernel.by_dma:
        return kernel
    with np.errstate(all="ignore"):  # what has no finite value has the one of IEEE 754, as at run time
        return simplify_truths(use_maxima(use_functions(fold_scale(keep_bits(kernel)))))
