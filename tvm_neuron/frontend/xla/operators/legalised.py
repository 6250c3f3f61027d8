"""Functions of CHLO that ONNX has nothing like, as the formulas in StableHLO that jaxlib's own pass makes of them."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any

from tvm_neuron.frontend.xla.region import Converter, convert_region
from tvm_neuron.frontend.xla.scope import Scope, shape_of

_PIPELINE = "builtin.module(func.func(chlo-legalize-to-stablehlo))"
_NAMES = (
    "bessel_i1e", "digamma", "erfc", "is_neg_inf", "is_pos_inf", "lgamma", "next_after", "polygamma", "zeta",
)  # fmt: skip


def _legalised(scope: Scope, op: Any, converters: Mapping[str, Converter]) -> None:
    """Alone in a module of its own: the pass leaves no function of CHLO, and others have operators of ONNX."""
    module, function = _alone(op)  # the module has to live as long as its operators are read
    block = function.regions[0].blocks[0]
    inner = scope.inner()
    for argument, value in zip(block.arguments, op.operands, strict=True):
        inner.set(argument, scope.full(value), shape_of(value))
    for result, value in zip(op.results, convert_region(inner, block, converters), strict=True):
        found = inner.tensors[value]
        scope.set(result, found.name, found.sizes)
    del module


def _alone(op: Any) -> tuple[Any, Any]:
    """A module with a function that does what `op` does, and this function, without CHLO."""
    _register_passes()
    ir, manager = import_module("jaxlib.mlir.ir"), import_module("jaxlib.mlir.passmanager")
    func = import_module("jaxlib.mlir.dialects.func")
    with op.context, op.location:
        module = ir.Module.create()
        kinds = ir.FunctionType.get([value.type for value in op.operands], [value.type for value in op.results])
        with ir.InsertionPoint(module.body):
            function = func.FuncOp("main", kinds)
        block = function.add_entry_block()
        with ir.InsertionPoint(block):
            copy = op.clone()
            for number, argument in enumerate(block.arguments):
                copy.operands[number] = argument
            func.ReturnOp(list(copy.results))
        manager.PassManager.parse(_PIPELINE).run(module.operation)
        return module, next(iter(module.body.operations))


@cache
def _register_passes() -> None:
    import_module("jaxlib.mlir.dialects.stablehlo").register_stablehlo_passes()


CONVERTERS: dict[str, Converter] = {f"chlo.{name}": _legalised for name in _NAMES}
