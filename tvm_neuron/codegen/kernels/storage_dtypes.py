"""choose_dtypes: in which dtype each tensor is kept while the subgraph runs (--fp32-cast all)."""

from tvm_neuron.schedule.kernel import Contraction, Kernel
from tvm_neuron.schedule.tensor import Tensor

SMALL_ELEMS = 1 << 16


def choose_dtypes(kernels: list[Kernel]) -> dict[Tensor, str]:
    """bfloat16 for what the PE array reads and for large tensors; small tensors that it does not read stay float32.

    A softmax's logits, maxima and sums are such: rounding them costs accuracy, keeping them costs nothing. Inputs and
    outputs keep the model's dtype.
    """
    multiplied = {kernel.root.data for kernel in kernels if isinstance(kernel.root, Contraction)}
    found: dict[Tensor, str] = {}
    for kernel in kernels:
        for tensor in (kernel.out, *kernel.sources()):
            if tensor.kind in ("input", "output"):
                found[tensor] = tensor.dtype
            else:
                found[tensor] = "float32" if tensor not in multiplied and tensor.elems <= SMALL_ELEMS else "bfloat16"
    return found
