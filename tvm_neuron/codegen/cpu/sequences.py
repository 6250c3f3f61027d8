"""Kernels without the mark that TVM's put on what runs in sequence, of which its LLVM warns a user on stderr."""

import tvm_ffi
from tvm import tirx

from tvm_neuron.codegen.cpu.kernel_pass import kernel_pass

_MARK = "pragma_scope"


def _unmarked(marked: tirx.AttrStmt) -> tirx.Stmt:
    return marked.body if marked.attr_key == _MARK else marked


unmark_sequences = kernel_pass("UnmarkSequences", lambda func: tvm_ffi.structural_map(func, (tirx.AttrStmt, _unmarked)))
"""Puts what is marked in the place of the mark, which says nothing more."""
