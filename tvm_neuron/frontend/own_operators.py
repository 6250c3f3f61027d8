"""register: operators of our own in Relax, whose results have the type that a call of them states."""

from collections.abc import Callable

import tvm
from tvm import relax


def register(
    name: str, what: str, legalize: Callable[[relax.BlockBuilder, relax.Call], relax.Expr] | None = None
) -> None:
    """Make TVM know the operator `name`; `legalize` gives what computes it, if that is a kernel of TVM's."""
    tvm.ir.op._ffi_api.RegisterOp(name, what)
    tvm.ir.register_op_attr(name, "FInferType", lambda call, _builder: call.ty_args[0])
    tvm.ir.register_op_attr(name, "FPurity", True)
    if legalize is not None:
        tvm.ir.register_op_attr(name, "FLegalize", legalize)
