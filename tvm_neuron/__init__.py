"""tvm_neuron: an ahead-of-time compiler for NeuronCore-like accelerators, as an extension of Apache TVM.

After `import tvm_neuron`, `tvm.compile(mod, target="neuron")` compiles for the accelerator, and exported libraries
load and run. `tvm_neuron.compile` takes models of any framework, `import tvm_neuron.relay` adds the interface of TVM's
Relay. Only the runtime is imported here; the compiler follows when a build for the target begins.
"""

import sys
from importlib import import_module
from typing import Any

if sys.argv[:1] == ["-m"]:  # as it is while `python -m tvm_neuron.cli.main` imports what it is in, which takes seconds
    import neuron_cc

    neuron_cc.end_while_importing()

import tvm
import tvm_ffi
from tvm.relax.pipeline import PIPELINE_MAP
from tvm.tirx.compilation_pipeline import PIPELINE_MAP as TIR_PIPELINE_MAP

from tvm_neuron import runtime
from tvm_neuron.hw import CHIPS
from tvm_neuron.runtime import host, report

__all__ = [
    "BuildOptions", "__version__", "build_options", "compare", "compile", "device", "partition_for_neuron", "relay",
    "report", "runtime", "sweep",
]  # fmt: skip

__version__ = runtime.VERSION

_LAZY = {
    "BuildOptions": ("tvm_neuron.build", "BuildOptions"),
    "build_options": ("tvm_neuron.build", "build_options"),
    "compare": ("tvm_neuron.numerics", "compare"),
    "compile": ("tvm_neuron.compile_model", "compile_model"),
    "partition_for_neuron": ("tvm_neuron.build", "partition_for_neuron"),
}
_DEFAULT_PIPELINE = PIPELINE_MAP["default"]
_TIR = "s_tir"  # TVM's name of what `tvm.compile` does with TIR by default
_DEFAULT_TIR_PIPELINE = TIR_PIPELINE_MAP[_TIR]


def device(index: int = 0) -> tvm.runtime.Device:
    """The device to run a library on: tensors live in the host's memory, so it is the CPU."""
    return tvm.cpu(index)


def __getattr__(name: str) -> Any:
    if name in ("relay", "sweep"):
        return import_module(f"tvm_neuron.{name}")
    if name in _LAZY:
        room, found = _LAZY[name]
        return getattr(import_module(room), found)
    raise AttributeError(f"module 'tvm_neuron' has no attribute '{name}'")


def _register() -> None:
    """Make TVM know the target: its tags, its code generator, and its pipeline in `tvm.compile`."""
    config = host.LLVM | {"keys": ["neuron", "cpu"]}
    tvm.target.register_tag("neuron", config, override=True)  # on the device of the options
    for chip in CHIPS:
        tvm.target.register_tag(f"neuron/{chip}", config | {"device": f"neuron/{chip}"}, override=True)
    tvm_ffi.register_global_func("relax.ext.neuron", _compile_subgraphs, override=True)
    PIPELINE_MAP["default"] = _choose_pipeline
    TIR_PIPELINE_MAP[_TIR] = _warning_pipeline


def _choose_pipeline(**kwargs: Any) -> tvm.transform.Pass:
    """The default pipeline of `tvm.compile`: ours under a Neuron target, else TVM's."""

    @tvm.transform.module_pass(opt_level=0, name="NeuronOrDefaultPipeline")
    def run(mod: tvm.IRModule, _context: tvm.transform.PassContext) -> tvm.IRModule:
        target = tvm.target.Target.current(allow_none=True)
        if target is None or "neuron" not in target.keys:
            return _DEFAULT_PIPELINE(**kwargs)(mod)
        from tvm_neuron import build

        return build.lower_natively(mod, build.options_of_target(target))

    return run


def _warning_pipeline() -> tuple[Any, Any, Any]:
    """TVM's pipeline of TIR and what finishes it, which tell first of functions that come without a Relax function."""

    @tvm.transform.module_pass(opt_level=0, name="NeuronOrDefaultTIRPipeline")
    def run(mod: tvm.IRModule, _context: tvm.transform.PassContext) -> tvm.IRModule:
        if any("neuron" in func.attrs["target"].keys for _, func in mod.functions_items()):
            from tvm_neuron.codegen.cpu import warn_of_lone_kernels

            warn_of_lone_kernels(mod)
        return pipeline(mod)

    pipeline, *finish = _DEFAULT_TIR_PIPELINE()
    return run, *finish


def _compile_subgraphs(*args: Any) -> Any:
    """`relax.ext.neuron`, which imports the compiler when it is first called."""
    from tvm_neuron.codegen import byoc

    return byoc.compile_subgraphs(*args)


_register()
