"""Puts a library's NEFFs and weights into its shared object without compiling them.

TVM writes them as an LLVM constant, which for 300 MB takes seconds and five times the memory; the assembler's
`.incbin` copies them.
"""

from pathlib import Path

import numpy as np
import tvm
import tvm_ffi

_ASSEMBLY = """\
    .section .rodata
    .globl {symbol}
    .p2align 6
{symbol}:
    .incbin "{data}"
    .section .note.GNU-stack,"",@progbits
"""


def pack_imports(module: tvm.runtime.Module, is_system_lib: bool, symbol_prefix: str, folder: str) -> str:
    """Write what `module` imports as an assembly file in `folder`, and give its path: `fpack_imports` of TVM."""
    del is_system_lib
    packed = tvm_ffi.get_global_func("runtime.ModulePackImportsToTensor")(module)
    data = Path(folder, f"{symbol_prefix}imports.bin")
    data.write_bytes(np.from_dlpack(packed).data)
    assembly = data.with_suffix(".s")
    assembly.write_text(_ASSEMBLY.format(symbol=f"{symbol_prefix}__tvm_ffi__library_bin", data=data))
    return str(assembly)
