"""Files of StableHLO, text or its portable bytes, and HLO protos. Reading runs nothing of them."""

from importlib import import_module
from pathlib import Path
from typing import Any

from tvm_neuron.errors import ModelError, from_extra
from tvm_neuron.frontend.cause import cause
from tvm_neuron.frontend.xla.hlo import hlo_module, to_stablehlo

_HLO, _OF_TENSORFLOW_TOO = ".hlo", ".pb"
SUFFIXES = (".mlir", ".stablehlo", ".mlirbc", _HLO)
_BYTECODE = b"ML\xefR"


def is_xla(path: Path) -> bool:
    """Whether its name says so; of a .pb, which may be TensorFlow's, what is in it."""
    if path.suffix != _OF_TENSORFLOW_TOO:
        return path.suffix in SUFFIXES
    try:
        return hlo_module(path.read_bytes()) is not None
    except OSError:
        return False


def read(path: Path) -> Any:
    """The module in a file.

    Raises:
        OptionError: jaxlib is not installed.
        ModelError: there is none, or not of StableHLO or HLO.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ModelError(f"'{path}' can't be read: {error.strerror}") from error
    module = hlo_module(content)
    if module is not None:
        return parse(to_stablehlo(module, f"'{path}'"), f"'{path}'")
    if path.suffix == _HLO and not content.startswith(_BYTECODE):
        raise ModelError(
            f"'{path}' holds no HloModuleProto or HloProto (HLO's text is not read): write the proto, or StableHLO, "
            "jax.jit(f).lower(x).as_text(), into a .mlir"
        )
    return parse(content, f"'{path}'")


def parse(content: bytes | str, where: str = "the text") -> Any:
    """The module that StableHLO's text or portable bytes say.

    Raises:
        ModelError: they are none.
    """
    with from_extra("jax", "a model in StableHLO"):
        ir = import_module("jaxlib.mlir.ir")
    dialects = import_module("jaxlib.mlir.dialects")
    context = ir.Context()
    known = ir.DialectRegistry()
    import_module("jaxlib.mlir._mlir_libs._jax_mlir_ext").register_dialects(known)  # of functions and their like
    context.append_dialect_registry(known)
    for name in ("chlo", "sdy", "stablehlo"):
        import_module(f"jaxlib.mlir.dialects.{name}")
        getattr(dialects, name).register_dialect(context)
    context.load_all_available_dialects()
    with context:
        try:
            if isinstance(content, bytes) and content.startswith(_BYTECODE):
                return dialects.stablehlo.deserialize_portable_artifact(context, content)
            return ir.Module.parse(content if isinstance(content, str) else content.decode())
        except (ir.MLIRError, ValueError) as error:
            raise ModelError(f"{where} is no StableHLO: {cause(error)}") from error
