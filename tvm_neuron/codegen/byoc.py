"""The code generator that TVM's `RunCodegen` calls for functions with the attribute `Codegen = "neuron"`."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import tvm
from tvm import relax

from tvm_neuron.codegen.defects import compiling, is_defect, reason_for_cpu
from tvm_neuron.codegen.options import BuildOptions
from tvm_neuron.codegen.precision import Precisions
from tvm_neuron.errors import OptionError, internal_error
from tvm_neuron.frontend.origin import origin_of
from tvm_neuron.hw import load_device
from tvm_neuron.neff import core_files
from tvm_neuron.partition import Refusal, Verdict
from tvm_neuron.partition.constraints import IsConstant
from tvm_neuron.partition.plan import CanSchedule
from tvm_neuron.partition.spans import SpansOf
from tvm_neuron.runtime import MANIFEST_ENTRY, make_module, shared


@dataclass(frozen=True)
class Compilation:
    """What the code generator needs to know of the build it runs in: the manifest, and the NEFF of each subgraph."""

    manifest: dict[str, Any]
    neffs: Mapping[str, bytes]


_current: ContextVar[Compilation | None] = ContextVar("tvm_neuron_compilation", default=None)


_shared: ContextVar[dict[str, bytes] | None] = ContextVar("tvm_neuron_shared_weights", default=None)


@contextmanager
def sharing_weights(entries: dict[str, bytes]) -> Iterator[None]:
    """NEFFs compiled inside the `with` block have their weights in `entries`, which their library must hold."""
    token = _shared.set(entries)
    try:
        yield
    finally:
        _shared.reset(token)


@contextmanager
def compilation(value: Compilation) -> Iterator[None]:
    """`RunCodegen` inside the `with` block takes `value`."""
    token = _current.set(value)
    try:
        yield
    finally:
        _current.reset(token)


def compile_subgraphs(functions: Sequence[relax.Function], _options: Any, _constants: Any) -> list[tvm.runtime.Module]:
    """One runtime module with the NEFF of every function and the manifest; `relax.ext.neuron`.

    Outside of a build, the functions are compiled with the usual options; see `compile_parts`.
    """
    current = _current.get() or Compilation({}, compile_parts(functions, BuildOptions()))
    entries = {symbol: current.neffs[symbol] for symbol in (str(func.attrs["global_symbol"]) for func in functions)}
    return [make_module(entries | {MANIFEST_ENTRY: encode_manifest(current.manifest | {"subgraphs": sorted(entries)})})]


def compile_parts(functions: Sequence[relax.Function], options: BuildOptions) -> dict[str, bytes]:
    """The NEFF of every function, by its symbol.

    Before TVM's `RunCodegen` asks for them, since it passes on of an error no more than its class and message.

    Raises PartError if a function can't be compiled, OptionError if none can be cut into as many stages as the options
    ask for.
    """
    from tvm_neuron.codegen import function  # here, since it brings all schedules with it

    device = load_device(options.device)
    found: dict[str, bytes] = {}
    for number, func in enumerate(functions, 1):
        symbol = str(func.attrs["global_symbol"])
        options.on_stage(f"compile {symbol}, {number} of {len(functions)}")
        with compiling(func, symbol):
            data = function.compile_function(func, symbol, device, options)
        apart = _shared.get()
        found[symbol] = data if apart is None else shared.outline(data, apart)
    if options.pipeline_cores > 1:
        _check_cores(found.values(), options.pipeline_cores)
    return found


def _check_cores(neffs: Iterable[bytes], wanted: int) -> None:
    """One of the subgraphs at least is on so many cores; small ones beside it may be on fewer."""
    most = max((len(core_files(data)) for data in neffs), default=wanted)
    if most < wanted:
        raise OptionError(
            f"pipeline_cores is {wanted}; the model can be cut into at most {most} stages, since cuts lie between "
            "kernels and all parts of one tensor are made on one core: ask for at most that many, and load the model "
            "several times (replicas) for more cores"
        )


def encode_manifest(manifest: dict[str, Any]) -> bytes:
    """The manifest as the library holds it: JSON with sorted keys, the same bytes for the same values."""
    return json.dumps(manifest, sort_keys=True).encode()


def scheduler(options: BuildOptions, refused: Mapping[str, str]) -> CanSchedule:
    """What the partition asks of every call: can the code generator schedule its kernel on the chosen device?

    `refused` has the reason for each operator, by name, of which it is known that it can't in its place.
    """
    from tvm_neuron.codegen import function  # here, since it brings all schedules with it
    from tvm_neuron.codegen.capability import question

    device = load_device(options.device)
    answers: dict[str, Verdict] = {}

    def ask(call: relax.Call, is_constant: IsConstant, spans_of: SpansOf) -> Verdict:
        origin = origin_of(call)
        name = origin.name if origin else ""
        if name in refused:
            return Refusal(refused[name])
        for pattern in options.on_cpu:
            if fnmatchcase(name, pattern):
                return Refusal(f"kept on the CPU: on_cpu has '{pattern}'")
        mode = options.precisions.mode_of(name)
        key = f"{mode} {question(call, is_constant, spans_of)}"
        if key not in answers:
            try:
                precisions, fast_relayout = Precisions(mode), options.fast_relayout
                answers[key] = function.can_schedule(call, is_constant, spans_of, device, precisions, fast_relayout)
            except Exception as error:
                if not is_defect(error):
                    raise
                defect = internal_error(error, str(origin))
                defect.part = key
                answers[key] = Refusal(reason_for_cpu(defect, [name], options))
        return answers[key]

    return ask
