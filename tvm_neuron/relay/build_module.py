"""`relay.build`: from a module and its weights to a library."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from glob import escape
from typing import Any, TypeAlias

import numpy as np
import tvm

from tvm_neuron import build as compiler
from tvm_neuron.codegen import byoc
from tvm_neuron.errors import ModelError, OptionError
from tvm_neuron.relay.factory import ExecutorFactory
from tvm_neuron.relay.infer import infer_types
from tvm_neuron.relay.ir.expr import Function
from tvm_neuron.relay.lower import OUTSIDE_ATTR, main_of, to_relax
from tvm_neuron.relay.modules import is_relay, module_of
from tvm_neuron.relay.params import bind_params_by_name
from tvm_neuron.runtime import FACTORY_ENTRY, make_module
from tvm_neuron.runtime.bound import BOUND_ENTRY, encoded

__all__ = ["bind_params_by_name", "build", "build_buckets", "build_config", "optimize"]

TargetLike: TypeAlias = Any
"""A tag, a dictionary made from one, or a `tvm.target.Target`."""

Params: TypeAlias = Mapping[str, tvm.runtime.Tensor | np.ndarray]

_TARGETS = (
    "use 'neuron', 'neuron/' with inf1, inf2, trn1 or trn2, {'tag': 'neuron', 'device': 'CHIP.json'}, or 'llvm' for "
    "the CPU alone; other choices are fields of BuildOptions, given as `options`"
)


def build(
    ir_mod: tvm.IRModule,
    target: TargetLike | None = "neuron",
    target_host: TargetLike | None = None,
    executor: Any = None,
    runtime: Any = None,
    workspace_memory_pools: Any = None,
    constant_memory_pools: Any = None,
    params: Params | None = None,
    mod_name: str = "default",
    *,
    options: compiler.BuildOptions | None = None,
) -> ExecutorFactory:
    """Compile `ir_mod` with its weights bound; the signature of TVM 0.18's `relay.build`.

    `target` is a Neuron target (`neuron`, `neuron/inf2`, ...), or `llvm`, which leaves all to the CPU; of several,
    the Neuron one counts. The arguments from `target_host` to `constant_memory_pools` are accepted and change
    nothing: the CPU parts are built for this machine, the executor is the graph executor. `options` is ours: see
    `BuildOptions`; its device counts where the target has none.

    >>> import tvm, tvm_neuron
    >>> from tvm_neuron import relay
    >>> x = relay.var("x", shape=(64, 256))
    >>> library = relay.build(tvm.IRModule.from_expr(relay.nn.softmax(x)), target="neuron/inf2")
    >>> [(row.op, row.where) for row in tvm_neuron.report(library).placement]
    [('nn.softmax', 'neuroncore')]

    Raises ModelError (bad params or target), OptionError (two devices), PlacementError, DeviceError, CompileError.
    """
    if isinstance(ir_mod, Function):
        ir_mod = module_of(ir_mod)
    if not isinstance(ir_mod, tvm.IRModule):
        raise ModelError(
            f"relay.build takes a module or a function of Relay, or the module of (mod, params) = from_onnx(...), got "
            f"{type(ir_mod).__name__}"
        )
    chosen, wanted = wishes(target, options)
    given = params
    if is_relay(ir_mod):
        names = {str(param.name_hint) for param in main_of(ir_mod).params}
        given = {name: value for name, value in (params or {}).items() if name in names}  # the others are bound already
        ir_mod = to_relax(ir_mod, {name: value.numpy() for name, value in _weights(given).items()}, is_flat=True)
    wanted = _in_regions(wanted, ir_mod)
    executable = compiler.build(ir_mod, _weights(given), wanted)
    root = make_module({FACTORY_ENTRY: mod_name.encode(), BOUND_ENTRY: encoded(_bound(ir_mod, params))})
    root.import_module(executable.mod)
    return ExecutorFactory(_without_weights(ir_mod), chosen, root, mod_name)


def build_buckets(
    imported: Sequence[tuple[tvm.IRModule, Params | None]],
    target: TargetLike | None = "neuron",
    mod_name: str = "default",
    *,
    options: compiler.BuildOptions | None = None,
) -> ExecutorFactory:
    """Compile several imports of one model, each with shapes of its own, into one library that chooses at run time.

    `imported` are what `from_onnx` returned for the batch sizes or sequence lengths. Weights that the programs lay out
    alike are in the library once. The executor takes the shapes of any bucket; with `dynamic_batch` also any number of
    rows, for which it takes the smallest bucket that holds them.

    Raises OptionError: there is no import, two have the same shapes, or their inputs differ in name, dtype or rank; and
    what `build` raises.
    """
    chosen, wanted = wishes(target, options)
    _check_buckets([mod for mod, _ in imported])
    weights: dict[str, bytes] = {}
    with byoc.sharing_weights(weights):
        executables = [
            compiler.build(mod, _weights(params), wanted, prefix=f"bucket{number}_")
            for number, (mod, params) in enumerate(imported)
        ]
    root = make_module({FACTORY_ENTRY: mod_name.encode()} | weights)
    for executable in executables:
        root.import_module(executable.mod)
    return ExecutorFactory(_without_weights(imported[0][0]), chosen, root, mod_name)


def build_config(
    opt_level: int = 2, required_pass: Sequence[str] | None = None, disabled_pass: Sequence[str] | None = None,
    trace: Any = None,
) -> tvm.transform.PassContext:  # fmt: skip
    """The context of passes to build in, by its name of TVM 0.7; `trace` changes nothing."""
    del trace
    return tvm.transform.PassContext(opt_level, required_pass=required_pass, disabled_pass=disabled_pass)


def optimize(
    mod: tvm.IRModule, target: TargetLike | None = "neuron", params: Params | None = None
) -> tuple[tvm.IRModule, Params]:
    """The module with types, and the weights: what else would be done to Relay's expressions is done by `build`.

    Raises ModelError: an unknown target, or an operator does not take the types of its operands.
    """
    _as_target(target)
    return infer_types(mod) if is_relay(mod) else mod, dict(params or {})


def wishes(
    target: TargetLike | None, options: compiler.BuildOptions | None
) -> tuple[tvm.target.Target, compiler.BuildOptions]:
    """The target, and the options that it and `options` ask for; the errors are those of `build`."""
    chosen = _as_target(target)
    with compiler.build_options(options) if options is not None else nullcontext():
        wanted = compiler.options_of_target(chosen)
    return chosen, wanted if compiler.is_neuron(chosen) else replace(wanted, on_cpu=("*",))


def _in_regions(wanted: compiler.BuildOptions, mod: tvm.IRModule) -> compiler.BuildOptions:
    """The options with what a partitioned module leaves out of its regions on the CPU."""
    names = [var.name_hint for var in mod.get_global_vars()]
    outside = mod["main"].attrs.get(OUTSIDE_ATTR, ()) if "main" in names else ()
    return replace(wanted, on_cpu=(*wanted.on_cpu, *(escape(str(name)) for name in outside)))


def _weights(params: Params | None) -> dict[str, tvm.runtime.Tensor]:
    if params is not None and not isinstance(params, Mapping | tvm.ir.Map):
        raise ModelError(f"params must be a dictionary of weights by name, got {type(params).__name__}")
    return {name: _as_tensor(name, value) for name, value in (params or {}).items()}


def _bound(mod: tvm.IRModule, params: Params | None) -> dict[str, tvm.runtime.Tensor]:
    """The weights that are compiled in: those given, and those that came with an imported module."""
    main = mod["main"] if any(var.name_hint == "main" for var in mod.get_global_vars()) else None
    own = list(main.attrs.get("params", ())) if main is not None and main.attrs else []
    names = [var.name for var in main.params[-len(own) :]] if main is not None and own else []
    return dict(zip(names, own, strict=True)) | _weights(params)


def _check_buckets(mods: Sequence[tvm.IRModule]) -> None:
    kinds, shapes = [], []
    for mod in mods:
        main = mod["main"]
        count = int(main.attrs.get("num_input", len(main.params)))
        inputs = main.params[:count]
        kinds.append([(var.name, str(var.ty.dtype), int(var.ty.ndim)) for var in inputs])
        shapes.append(str([list(var.ty.shape) for var in inputs]))
    if not mods:
        raise OptionError("build_buckets needs at least one import of the model")
    if len(set(shapes)) < len(shapes):
        raise OptionError(f"two buckets have the same shapes: {', '.join(shapes)}")
    if any(kind != kinds[0] for kind in kinds):
        raise OptionError(f"buckets must be imports of one model, but their inputs are {kinds}")


def _without_weights(mod: tvm.IRModule) -> tvm.IRModule:
    """The module as Relay's factory kept it: weights lie in the library, and in memory once."""
    if not any(var.name_hint == "main" for var in mod.get_global_vars()):
        return mod
    mod = mod.clone()
    mod["main"] = mod["main"].without_attr("params")
    return mod


def _as_target(target: TargetLike | None) -> tvm.target.Target:
    """The one target of a build; Relay also allowed several, in a list or by device type in a dictionary."""
    if isinstance(target, Mapping) and not {"kind", "tag"} & set(target):
        target = list(target.values())
    if isinstance(target, list | tuple):
        several = [_as_target(each) for each in target]
        return next((each for each in several if compiler.is_neuron(each)), several[0]) if several else _as_target(None)
    try:
        chosen = target if isinstance(target, tvm.target.Target) else tvm.target.Target(target or "neuron")
    except (TypeError, ValueError) as error:
        raise ModelError(f"target {target!r} is unknown; {_TARGETS}") from error
    if not compiler.is_neuron(chosen) and chosen.kind.name != "llvm":
        raise ModelError(f"target {chosen} is neither a Neuron target nor 'llvm'; {_TARGETS}")
    return chosen


def _as_tensor(name: str, value: tvm.runtime.Tensor | np.ndarray) -> tvm.runtime.Tensor:
    if isinstance(value, tvm.runtime.Tensor):
        return value
    array = np.asarray(value)
    if array.dtype.kind in "OSU":
        raise ModelError(f"params['{name}'] is a {type(value).__name__} without numbers: give an array")
    return tvm.runtime.tensor(array)
