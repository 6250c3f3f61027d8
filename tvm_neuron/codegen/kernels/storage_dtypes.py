"""choose_dtypes: in which dtype each tensor is kept while the subgraph runs."""

from tvm_neuron.codegen.integers import is_integer
from tvm_neuron.codegen.kernels.compared import compared_tensors
from tvm_neuron.codegen.precision import DEFAULT, Precisions
from tvm_neuron.isa.dtypes import device_dtype
from tvm_neuron.schedule.expr import Load
from tvm_neuron.schedule.kernel import Contraction, Kernel, Product, Scan, Statistics
from tvm_neuron.schedule.tensor import Tensor, is_rounded
from tvm_neuron.schedule.uses import readers_of

SMALL_ELEMS = 1 << 16


def choose_dtypes(kernels: list[Kernel], precisions: Precisions = DEFAULT) -> dict[Tensor, str]:
    """The PE array's dtype for what it reads, else what the precision of the operator that writes a tensor says.

    Small tensors that the PE array does not read stay float32: a softmax's logits, maxima and sums are such, and the
    statistics of a norm; rounding them costs accuracy, keeping them costs nothing. So does what is compared with
    another tensor: a maximum that is rounded is none of the elements. Inputs and outputs keep the model's dtype, as do
    integers and booleans that it does not read, and what the model itself rounds; what comes in transposed keeps the
    input's.
    """
    multiplied = {
        tensor: k.root.dtype
        for k in kernels
        if isinstance(k.root, Contraction | Product)
        for tensor in k.multiplied()
    }
    kept = compared_tensors(kernels) | {kernel.out for kernel in kernels if _is_short(kernel)}
    writer = {kernel.out: kernel for kernel in kernels}
    rounded = {
        tensor
        for kernel in kernels
        for tensor in kernel.sources()
        if tensor in writer and is_rounded(writer[tensor].sources(), tensor, kernel.out)
    }
    turned = turned_dtypes(kernels)
    found: dict[Tensor, str] = {}
    for kernel in kernels:
        for tensor in (kernel.out, *kernel.sources()):
            if tensor in turned:
                found[tensor] = turned[tensor]
            elif tensor.kind in ("input", "output"):
                found[tensor] = device_dtype(tensor.dtype)
            elif tensor in multiplied:
                found[tensor] = multiplied[tensor]
            elif is_integer(tensor.dtype) or tensor in rounded or tensor not in kept:
                found[tensor] = precisions.of(writer[tensor].origins[-1].name).dtype_of(tensor.dtype)
            else:
                found[tensor] = "float32"
    readers = readers_of(kernels)
    for kernel in filter(_is_move, reversed(kernels)):  # what is moved twice loses no digits on its way
        for tensor in kernel.sources():
            is_between = tensor.kind == "temp" and tensor not in turned and tensor.dtype == kernel.out.dtype
            if is_between and len(readers[tensor]) == 1 and _is_move(writer[tensor]):
                found[tensor] = found[kernel.out]
    return found


def _is_move(kernel: Kernel) -> bool:
    return kernel.root is None and isinstance(kernel.expr, Load)


def turned_dtypes(kernels: list[Kernel]) -> dict[Tensor, str]:
    """In which dtype inputs lie that come in transposed: the DMA does not convert them on that way."""
    return {k.out: device_dtype(tensor.dtype) for k in kernels if k.is_turned for tensor in k.sources()}


def _is_short(kernel: Kernel) -> bool:
    """Whether what it writes takes little room: few elements, or the statistics of far more.

    Nor are running sums rounded, and states, which stand for all that lies before.
    """
    return kernel.out.elems <= SMALL_ELEMS or isinstance(kernel.root, Statistics | Scan)
