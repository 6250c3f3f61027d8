"""from_tirx: a function of TIRx, as TVM's own target `trn` prints it, as a kernel."""

import ast
from collections.abc import Callable
from typing import Any

import tvm
from tvm import tirx

from tvm_neuron.errors import KernelError
from tvm_neuron.nki.dialects import BETA1
from tvm_neuron.nki.kernel import Kernel
from tvm_neuron.nki.language import ndarray, shared_hbm

_TARGET = "aws/trn1/trn1.2xlarge"


def from_tirx(function: tirx.PrimFunc) -> Kernel:
    """The kernel that TVM makes of the function: it takes the first `num_inputs` buffers and gives the others.

    `num_inputs` is an attribute of the function, TVM's own. What TVM prints is Python, which is run as kernels are.

    Raises:
        KernelError: TVM can't lower the function for `trn`, or it lacks `num_inputs`.
    """
    name = str((function.attrs or {}).get("global_symbol", "kernel"))
    if "num_inputs" not in (function.attrs or {}):
        raise KernelError(
            f"'{name}' does not say which of its buffers are inputs: T.func_attr({{'num_inputs': 1}}), the others "
            "being outputs"
        )
    try:
        with tvm.target.Target(_TARGET):
            made = tvm.compile(tvm.IRModule({"main": function}), tir_pipeline="trn")
        source = made.mod.imports[0].inspect_source()
    except Exception as error:
        raise KernelError(f"TVM can't lower '{name}' for its target trn: {_last_line(error)}") from error
    written = function.params[int(function.attrs["num_inputs"]) :]
    outputs = [(tuple(int(size) for size in buffer.shape), str(buffer.dtype)) for buffer in written]
    return Kernel(_with_outputs(_printed(source, name), outputs), dialect=BETA1)


def _last_line(error: Exception) -> str:
    return str(error).strip().rpartition("\n")[2] or type(error).__name__


def _printed(source: str, name: str) -> Callable[..., Any]:
    """The function in what TVM printed, which imports the kernel language by the names of Beta 1."""
    tree = ast.parse(source)
    found = next(node for node in tree.body if isinstance(node, ast.FunctionDef))
    names: dict[str, Any] = {}
    exec(compile(source, f"<{name} in TIRx>", "exec"), names)
    kernel: Kernel = names[found.name]
    return kernel.function


def _with_outputs(function: Callable[..., Any], outputs: list[tuple[tuple[int, ...], str]]) -> Callable[..., Any]:
    """The printed function writes to parameters; a kernel makes its outputs itself."""

    def kernel(*inputs: Any) -> Any:
        made = [ndarray(shape, dtype, buffer=shared_hbm) for shape, dtype in outputs]
        function(*inputs, *made)
        return made[0] if len(made) == 1 else tuple(made)

    kernel.__name__ = function.__name__
    return kernel
