"""Kernels without the mark that TVM's put on what runs in sequence, of which its LLVM warns a user on stderr."""

import tvm
import tvm_ffi
from tvm import tirx

_MARK = "pragma_scope"


@tvm.transform.module_pass(opt_level=0, name="UnmarkSequences")
def unmark_sequences(mod: tvm.IRModule, _context: tvm.transform.PassContext) -> tvm.IRModule:
    """The module with what is marked in the place of the mark, which says nothing more."""
    found = mod.clone()
    for var, func in mod.functions_items():
        if isinstance(func, tirx.PrimFunc):
            found[var] = tvm_ffi.structural_map(func, (tirx.AttrStmt, _unmarked))
    return found


def _unmarked(marked: tirx.AttrStmt) -> tirx.Stmt:
    return marked.body if marked.attr_key == _MARK else marked
