"""Which calls of a module of Relay the core would run: asked of the compiler, for the module as a whole."""

from typing import Any

import tvm

from tvm_neuron.build import BuildOptions, is_neuron, options_of_target, placed
from tvm_neuron.codegen.options import current_options
from tvm_neuron.partition import Where
from tvm_neuron.relay.lower import Lowering, functions_of, main_of
from tvm_neuron.relay.open_model import OpenModel

NEURON = "neuron"
"""The name of this compiler among those that regions are for."""


def calls_on_core(mod: tvm.IRModule) -> set[Any]:
    """The calls of operators in `main` that `relay.build` would not leave to the CPU.

    The device is that of the enclosing target or of the enclosing `build_options`. Raises ModelError: as `relay.build`.
    """
    main = main_of(mod)
    if isinstance(main, OpenModel):
        return set()  # it has none yet
    lowering = Lowering(functions_of(mod))
    module = lowering.module(main, [lowering.parameter(param) for param in main.params])
    with tvm.transform.PassContext():  # none of the user's instruments: they look for Relay
        rows = placed(module, None, _options()).placements
    on_cpu = {row.name for row in rows if row.where == Where.CPU.value}
    return {call for call, origin in lowering.origins.items() if origin.name not in on_cpu}


def _options() -> BuildOptions:
    target = tvm.target.Target.current(allow_none=True)
    return options_of_target(target) if is_neuron(target) else current_options() or BuildOptions()
