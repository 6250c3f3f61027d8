"""The passes over what stays on the CPU, as a list: legalise, fold, fuse, and what the virtual machine needs."""

import tvm
from tvm import relax

from tvm_neuron.codegen.cpu.casts import CASTS
from tvm_neuron.codegen.cpu.constants import fold_constants
from tvm_neuron.codegen.cpu.drawing import draw_at_run_time
from tvm_neuron.codegen.cpu.empty_constants import allocate_empty_constants
from tvm_neuron.codegen.cpu.extremes import EXTREMES
from tvm_neuron.codegen.cpu.lone_kernels import called
from tvm_neuron.codegen.cpu.loops import loops_as_functions
from tvm_neuron.codegen.cpu.narrow_floats import with_narrow_floats
from tvm_neuron.codegen.cpu.not_a_number import keep_nan
from tvm_neuron.codegen.cpu.positions import check_positions
from tvm_neuron.codegen.cpu.products import PRODUCTS
from tvm_neuron.codegen.cpu.products_in_turn import products_in_turn
from tvm_neuron.codegen.cpu.rename import with_prefix
from tvm_neuron.codegen.cpu.scattering import SCATTERING
from tvm_neuron.codegen.cpu.schedule import schedule_kernels
from tvm_neuron.codegen.cpu.sequences import unmark_sequences
from tvm_neuron.codegen.cpu.signs import SIGNS
from tvm_neuron.codegen.cpu.sizes_first import define_sizes_first
from tvm_neuron.codegen.cpu.suppression import SUPPRESSION
from tvm_neuron.codegen.cpu.truths import TRUTHS
from tvm_neuron.codegen.cpu.variants import with_variants
from tvm_neuron.codegen.cpu.wrapping import wrap_integers
from tvm_neuron.codegen.quiet_kernels import QUIET_KERNELS
from tvm_neuron.codegen.zero_operands import ZERO_OPERANDS

_KERNELS = {
    **CASTS, **EXTREMES, **PRODUCTS, **QUIET_KERNELS, **SCATTERING, **SIGNS, **SUPPRESSION, **TRUTHS, **ZERO_OPERANDS,
}  # fmt: skip


def lower(mod: tvm.IRModule, prefix: str = "", is_plain: bool = False) -> tvm.IRModule:
    """A module of operators and calls of Neuron subgraphs as what the virtual machine's code generator takes.

    `prefix` begins the names of the kernels. Plain ones compute one operator each, as TVM writes it.
    """
    fused = [] if is_plain else [relax.transform.FuseOps(), relax.transform.FuseTIR()]
    passes = [
        loops_as_functions,
        draw_at_run_time,
        check_positions,
        relax.backend.DispatchSampling(),
        relax.backend.DispatchSortScan(),
        relax.transform.LegalizeOps(with_narrow_floats(_KERNELS)),
        unmark_sequences,
        wrap_integers,
        relax.transform.AnnotateTIROpPattern(),
        fold_constants,
        relax.transform.FoldConstant(),
        *fused,
        define_sizes_first,
        *([] if is_plain else [schedule_kernels]),
        keep_nan,
        products_in_turn,
        allocate_empty_constants,
        relax.pipeline.default_build_pipeline(),
    ]
    mod = tvm.transform.Sequential(passes)(mod)
    return called(with_variants(with_prefix(mod, prefix) if prefix else mod))
