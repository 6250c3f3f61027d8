"""kernel_pass: what rewrites each kernel of a module by itself, as a pass."""

from collections.abc import Callable

import tvm
from tvm import tirx


def kernel_pass(name: str, rewrite: Callable[[tirx.PrimFunc], tirx.PrimFunc]) -> tvm.transform.Pass:
    """The pass of that name; functions that are no kernels stay as they are."""

    def run(mod: tvm.IRModule, _context: tvm.transform.PassContext) -> tvm.IRModule:
        found = mod.clone()
        for var, func in mod.functions_items():
            if isinstance(func, tirx.PrimFunc):
                found[var] = rewrite(func)
        return found

    return tvm.transform.module_pass(run, opt_level=0, name=name)
