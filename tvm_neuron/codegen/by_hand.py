"""compile_by_hand: a part that is one kernel written by hand, as the program that the kernel itself makes."""

from collections.abc import Callable
from dataclasses import replace

from tvm import relax

from tvm_neuron.codegen.options import BuildOptions
from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.by_hand import KERNELS, Operand, compiled_instead, constant_of, kernel_name
from tvm_neuron.frontend.decompose.shapes import static_shape
from tvm_neuron.frontend.origin import OUTPUTS_ATTR, bindings_of, origin_of
from tvm_neuron.neff import Pipeline, read_pipeline
from tvm_neuron.profile.kernels import COMPILED_OPTION, KERNEL_OPTION
from tvm_neuron.sim import time_program

Compile = Callable[[relax.Function, str], bytes]


def is_by_hand(func: relax.Function) -> bool:
    """Whether a function holds a kernel written by hand, which has its part to itself."""
    return any(kernel_name(binding.value) for binding in bindings_of(func))


def compile_by_hand(func: relax.Function, name: str, options: BuildOptions, compiled: Compile) -> Pipeline:
    """The program of a part that is a kernel; `compiled` is the compiler itself, for what stands in the kernel's place.

    Raises:
        KernelError: the kernel breaks a rule of the language or of the chip.
        ModelError: an operand is computed from constants.
    """
    call = next(binding.value for binding in bindings_of(func) if kernel_name(binding.value))
    kernel, origin = kernel_name(call), origin_of(call)
    operands: dict[str, Operand] = {}
    for at, operand in enumerate(call.args):
        value = constant_of(operand)
        if value is None and operand not in set(func.params):
            raise ModelError(
                f"operand {at} of kernel '{kernel}' ({origin}) is computed from constants: give it as a constant"
            )
        shape = static_shape(operand)
        assert shape is not None
        key = f"constant{at}" if value is not None else operand.name
        operands[key] = (shape, str(operand.ty.dtype)) if value is None else value
    results = [str(each) for each in func.attrs[OUTPUTS_ATTR]]
    neff = KERNELS[kernel].neff(name, options.device, operands, results)
    told = options.to_dict() | {KERNEL_OPTION: kernel}
    reference = compiled_instead(call)
    if reference is not None:
        told[COMPILED_OPTION] = _compiled_us(reference, compiled)
    return Pipeline.of(replace(neff, options=told))


def _compiled_us(reference: relax.Function, compiled: Compile) -> float:
    """What the compiler makes of the same operands takes."""
    types = reference.ret_ty.fields if isinstance(reference.ret_ty, relax.TupleType) else [reference.ret_ty]
    attrs = {OUTPUTS_ATTR: [f"result{at}" for at in range(len(types))], "global_symbol": "instead"}
    pipeline = read_pipeline(compiled(reference.with_attrs(attrs), "instead"))
    return sum(time_program(core.program, core.device).total_ps for core in pipeline.cores) / 1e6
