"""`relay.transform`: passes over modules of Relay, which TVM's own pass manager runs."""

from collections.abc import Callable

import tvm

from tvm_neuron.relay.infer import infer_types


def _pass(name: str, run: Callable[[tvm.IRModule], tvm.IRModule]) -> tvm.transform.Pass:
    @tvm.transform.module_pass(opt_level=0, name=name)
    def apply(mod: tvm.IRModule, _context: tvm.transform.PassContext) -> tvm.IRModule:
        return run(mod)

    return apply


def InferType() -> tvm.transform.Pass:  # noqa: N802 - Relay's name
    """The type of every expression."""
    return _pass("InferType", infer_types)
