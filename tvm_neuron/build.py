"""The whole compiler as a list: normalise, partition, compile the Neuron subgraphs, lower the CPU rest."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any, TypeVar

import tvm
from tvm import relax

from tvm_neuron.codegen import byoc, cpu
from tvm_neuron.codegen.collector import seldom_collected
from tvm_neuron.codegen.defects import PartError, is_defect, tell, write_down
from tvm_neuron.codegen.options import BuildOptions, build_options, current_options
from tvm_neuron.codegen.retreat import Retreat
from tvm_neuron.codegen.share import multiplications_moved, subgraphs, warn_of_little_work
from tvm_neuron.codegen.worth import weigher
from tvm_neuron.errors import OptionError, internal_error
from tvm_neuron.frontend.entry import MAIN, entry_name, renamed, warn_of_open_sizes
from tvm_neuron.frontend.normalize import Params, normalize
from tvm_neuron.hw import load_device
from tvm_neuron.partition import Partition, check_must_compile, partition
from tvm_neuron.partition.flow import call_flow, describe_tensors
from tvm_neuron.partition.naming import output_names
from tvm_neuron.runtime import MANIFEST_ENTRY, VERSION, make_module
from tvm_neuron.runtime.host import BASELINE, LLVM

__all__ = ["BuildOptions", "build", "build_options", "lower", "partition_for_neuron", "placed"]

T = TypeVar("T")


def build(
    mod: tvm.IRModule, params: Params | None = None, options: BuildOptions | None = None, prefix: str = ""
) -> tvm.runtime.Executable:
    """Compile a Relax module to an executable for Relax's virtual machine.

    `prefix` begins the names of its CPU kernels, so that one library can hold several.

    Raises ModelError (bad params), PlacementError (`must_compile`), DeviceError (unknown device), CompileError.
    """
    options = options or current_options() or BuildOptions()
    host = _host(options)
    with _naming_stages(options) as options, host:
        mod = _with_neffs(mod, params, options)
        try:
            return _linked(mod, options, host, prefix)
        except Exception as error:
            if not is_defect(error):
                raise
            defect = internal_error(error, "the CPU parts")
            try:
                library = _linked(mod, options, host, prefix, is_plain=True)
            except Exception:
                raise error from None
            tell(defect, "the CPU's operators run one by one and take longer", options)
            return library


def _linked(
    mod: tvm.IRModule, options: BuildOptions, host: tvm.target.Target, prefix: str, is_plain: bool = False
) -> tvm.runtime.Executable:
    options.on_stage("compile the CPU parts")
    mod = cpu.lower(mod, prefix, is_plain)
    options.on_stage("link")
    return relax.build(mod, host, relax_pipeline=None)


def _host(options: BuildOptions) -> tvm.target.Target:
    """The target of the CPU parts; for LLVM, the architecture's baseline has no name."""
    level = options.host_level
    return tvm.target.Target(LLVM if level == BASELINE else LLVM | {"mcpu": level})


@contextmanager
def _naming_stages(options: BuildOptions) -> Iterator[BuildOptions]:
    """What fails inside, of which a user can know nothing, is written down and says at which stage that was."""
    stages = ["start"]

    def on_stage(name: str) -> None:
        stages.append(name)
        options.on_stage(name)

    try:
        yield replace(options, on_stage=on_stage)
    except Exception as error:
        if not is_defect(error):
            raise
        defect = internal_error(error, f"the stage '{stages[-1]}'")
        write_down(defect, options)
        raise defect from error


def lower(mod: tvm.IRModule, params: Params | None, options: BuildOptions) -> tvm.IRModule:
    """All passes from the imported module to what the virtual machine's code generator takes."""
    mod = _with_neffs(mod, params, options)
    options.on_stage("compile the CPU parts")
    return cpu.lower(mod)


def _with_neffs(mod: tvm.IRModule, params: Params | None, options: BuildOptions) -> tvm.IRModule:
    """The imported module with calls of NEFFs; what is left is the CPU's."""
    load_device(options.device)
    options = options.begun()
    options.on_stage("normalise")
    mod = normalize(mod, params)
    warn_of_open_sizes(mod[MAIN])
    return place(mod, options)


def lower_natively(mod: tvm.IRModule, options: BuildOptions) -> tvm.IRModule:
    """`lower` for `tvm.compile`, after which the module's entry has the name that it had."""
    return renamed(lower(mod, None, options), MAIN, entry_name(mod))


def placed(mod: tvm.IRModule, params: Params | None, options: BuildOptions) -> Partition:
    """Where the operators of an imported module would run: all of `build` that precedes compiling.

    Raises ModelError (bad params), DeviceError (unknown device).
    """
    with _naming_stages(options) as options, _host(options):
        load_device(options.device)
        return _in_parts(normalize(mod, params), options, lambda parts: parts)


def partition_for_neuron(
    mod: tvm.IRModule, params: Params | None = None, options: BuildOptions | None = None
) -> tvm.IRModule:
    """A Relax module in parts: what the core would run is in functions `neuron_<i>` with the attribute `Codegen`.

    Where operators run is what `build` decides, for the device of the enclosing target or of the options. TVM's
    `relax.transform.RunCodegen()` compiles the functions.

    Raises ModelError (bad params), DeviceError (unknown device), OptionError (two devices).
    """
    target = tvm.target.Target.current(allow_none=True)
    if options is None:
        options = options_of_target(target) if is_neuron(target) else current_options() or BuildOptions()
    return placed(mod, params, options).mod


def place(mod: tvm.IRModule, options: BuildOptions) -> tvm.IRModule:
    """The parts, those for NeuronCores compiled. Warns if these have little of the work."""

    def compiled(parts: Partition) -> tvm.IRModule:
        if options.must_compile:
            check_must_compile(parts.placements)
        return run_codegen(parts, options)

    return _in_parts(mod, options, compiled)


@seldom_collected()
def _in_parts(mod: tvm.IRModule, options: BuildOptions, use: Callable[[Partition], T]) -> T:
    """What `use` makes of the parts. Where it can't compile one, operators leave it for the CPU.

    Every operator was asked on its own whether it can be scheduled. One that then can't be beside its neighbours (it
    would need their tensors in another layout, or more memory than they leave) goes to the CPU, with that reason; and
    so do those at fault where the compiler has a defect.
    """
    retreat = Retreat(options)
    can_schedule, weigh = byoc.scheduler(options, retreat.reasons), weigher(options)
    while True:
        options.on_stage("partition")
        try:
            return use(partition(mod, retreat.refuse_all or can_schedule, weigh))
        except PartError as error:
            retreat.leave(error)
        except Exception as error:
            if not is_defect(error):
                raise
            retreat.leave_all(error)


def run_codegen(parts: Partition, options: BuildOptions) -> tvm.IRModule:
    """Replace the Neuron subgraphs by calls of the runtime module that holds their NEFFs."""
    described = describe(parts, options) | {"macs_moved": multiplications_moved(parts)}
    neffs = byoc.compile_parts(subgraphs(parts.mod), options)
    with byoc.compilation(byoc.Compilation(described, neffs)):
        mod = relax.transform.RunCodegen()(parts.mod)
    if "*" not in options.on_cpu:  # else it was asked for
        warn_of_little_work(parts, described["macs_moved"])
    # TVM lists the subgraphs' constants here, to be stored in the library; the NEFFs hold them already
    mod = mod.without_attr("const_name_to_constant")
    if not mod.get_attr("external_mods"):
        manifest = byoc.encode_manifest(described | {"subgraphs": []})
        mod = mod.with_attr("external_mods", [make_module({MANIFEST_ENTRY: manifest})])
    return mod


def describe(parts: Partition, options: BuildOptions) -> dict[str, Any]:
    """The manifest, but for the names of the subgraphs."""
    main = parts.mod["main"]
    fields = main.ret_ty.fields if isinstance(main.ret_ty, relax.TupleType) else [main.ret_ty]
    inputs = describe_tensors([var.name for var in main.params], [var.ty for var in main.params])
    outputs = describe_tensors(output_names(main), fields)
    if options.dynamic_batch:
        _check_batch([*inputs, *outputs])
    return {
        "compiler": f"tvm_neuron {VERSION}",
        "options": options.to_dict(),
        "device": options.device,
        "placement": [asdict(row) for row in parts.placements],
        "inputs": inputs,
        "outputs": outputs,
    } | call_flow(parts.mod)


def _check_batch(tensors: Sequence[dict[str, Any]]) -> None:
    """Raises OptionError unless the first dimension of all inputs and outputs is the same known size."""
    sizes = {row["shape"][0] if row["shape"] else 0 for row in tensors}
    if len(sizes) != 1 or min(sizes) < 1:
        shapes = ", ".join(f"'{row['name']}' {row['shape']}" for row in tensors)
        raise OptionError(
            f"dynamic_batch needs a batch as first dimension, the same for all inputs and outputs: {shapes}; compile "
            "one library for each batch size instead"
        )


def options_of_target(target: tvm.target.Target) -> BuildOptions:
    """The options that a target asks for: those of the enclosing `build_options`, on the target's device if it has one.

    Raises OptionError: the options ask for another.
    """
    options = current_options() or BuildOptions()
    device = target.attrs.get("device")
    if device and options.device not in (device, BuildOptions.device):
        raise OptionError(
            f"the target's device is '{device}', that of BuildOptions '{options.device}': give one of them only; the "
            "target 'neuron' has none of its own"
        )
    return replace(options, device=str(device)) if device else options


def is_neuron(target: tvm.target.Target | None) -> bool:
    """Whether `target` is one of the tags, or a dictionary made from one."""
    return target is not None and "neuron" in target.keys
