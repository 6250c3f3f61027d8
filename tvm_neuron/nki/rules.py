"""What calls of nki.isa ask of their operands beyond what their instructions check, in one table.

The functions of nki.language take more: they bring rows to all partitions and cast. Facts are those of the public
documentation of NKI.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from tvm_neuron.nki.operators import BITS
from tvm_neuron.nki.source import wrong
from tvm_neuron.nki.view import View

_FLOATS = ("float32", "bfloat16", "float16")
_MOST_ELEMS = 1 << 16  # of a partition, by one instruction


@dataclass(frozen=True)
class Rule:
    """What an operand may be, if it is a tile.

    `like`: has the partitions of that operand, and as many elements in each. `column`: [P, 1] with the partitions of
    that one. `dtypes`: has one of these (any where none is named). `is_tile`: is no number and not left out.
    """

    like: str = ""
    column: str = ""
    dtypes: tuple[str, ...] = ()
    is_tile: bool = False


_SCALAR = Rule(column="data", dtypes=("float32",))
_SUM = Rule(column="data", is_tile=True)
_PREDICATE = ("uint8", "uint16", "uint32", "bool")

RULES: Mapping[str, Mapping[str, Rule]] = {
    "activation": {"scale": _SCALAR, "bias": Rule(dtypes=_FLOATS), "reduce_res": Rule(column="data")},
    "activation_reduce": {"scale": _SCALAR, "bias": Rule(dtypes=_FLOATS), "reduce_res": _SUM},
    "local_gather": {"index": Rule(dtypes=("uint16",))},
    "scalar_tensor_tensor": {"operand0": _SCALAR, "operand1": Rule(like="data", is_tile=True)},
    "select_reduce": {
        "predicate": Rule(like="on_true", is_tile=True),
        "on_false": Rule(column="on_true"), "reduce_res": Rule(column="on_true"),
    },
    "tensor_copy_predicated": {
        "src": Rule(like="dst"), "predicate": Rule(like="dst", dtypes=_PREDICATE, is_tile=True),
    },
    "tensor_scalar": {"operand0": _SCALAR, "operand1": _SCALAR},
    "tensor_scalar_reduce": {"operand0": _SCALAR, "reduce_res": _SUM},
    "tensor_tensor": {"data2": Rule(like="data1", is_tile=True)},
    "tensor_tensor_scan": {"data1": Rule(like="data0", is_tile=True), "initial": Rule(column="data0")},
}  # fmt: skip
# Of those that may be asked for an engine, which have the instruction.
ENGINES: Mapping[str, tuple[str, ...]] = {
    "memset": ("vector", "gpsimd"),
    "nc_transpose": ("tensor", "vector"),
    "tensor_copy": ("vector", "scalar", "gpsimd"),
    "tensor_scalar": ("vector", "scalar", "gpsimd"),
    "tensor_tensor": ("vector", "gpsimd"),
}
_BY_DMA = ("dma_copy", "dma_transpose")


def check(name: str, operands: Mapping[str, Any]) -> None:
    """Refuses operands of `nki.isa.<name>` that the core does not take.

    Raises:
        KernelError: one is of another shape, dtype or kind, or the engine has no such instruction.
    """
    views = {operand: value for operand, value in operands.items() if isinstance(value, View)}
    for operand, rule in RULES.get(name, {}).items():
        value = operands.get(operand)
        if isinstance(value, View):
            # Operations on bits take whole numbers, as the instruction says itself.
            is_bits = getattr(operands.get("op0"), "__name__", operands.get("op0")) in BITS
            _check_tile(f"{name} with {operand} {value}", value, rule, views, () if is_bits else rule.dtypes)
        elif rule.is_tile:
            raise wrong(f"{name} with {operand}={value}; it is a tile{_shape(rule, views)}: make one (nki.isa.memset)")
    engine = operands.get("engine")
    if engine not in (None, "unknown", *ENGINES.get(name, (engine,))):
        raise wrong(f"{name} on engine {engine}; its instruction is that of {' and '.join(ENGINES[name])}")
    if engine == "gpsimd":
        need_sbuf(name, *views.values())
    for view in views.values():
        if name in _BY_DMA and view.tensor.memory == "psum":
            raise wrong(
                f"{name} of {view}, which lies in PSUM; the DMA has device memory and SBUF: copy it to SBUF first"
            )
        if name not in _BY_DMA and prod(view.shape[1:]) > _MOST_ELEMS:
            raise wrong(
                f"{name} of {view}, {prod(view.shape[1:])} elements of each partition; an instruction has at most "
                f"{_MOST_ELEMS}: take it in parts"
            )


def _shape(rule: Rule, views: Mapping[str, View]) -> str:
    other = views.get(rule.like or rule.column)
    if other is None:
        return ""
    return f" of {list(other.shape)}, as {rule.like}" if rule.like else f" [{other.shape[0]}, 1]"


def _check_tile(what: str, view: View, rule: Rule, views: Mapping[str, View], dtypes: tuple[str, ...]) -> None:
    if dtypes and view.tensor.dtype not in dtypes:
        raise wrong(f"{what}, {view.tensor.dtype}; it is {' or '.join(dtypes)}: cast it (tensor_copy)")
    other = views.get(rule.like or rule.column)
    if other is None:
        return
    each = prod(other.shape[1:]) if rule.like else 1
    if (view.shape[:1], prod(view.shape[1:])) != (other.shape[:1], each):
        raise wrong(
            f"{what}; it is{_shape(rule, views)}: an instruction repeats nothing but a column, as scalar operand "
            "(nl.broadcast_to, or .ap with a step of 0)"
        )


def need_sbuf(what: str, *views: View) -> None:
    """Refuses operands that GpSimd does not reach.

    Raises:
        KernelError: one lies in PSUM.
    """
    far = next((view for view in views if view.tensor.memory != "sbuf"), None)
    if far is not None:
        raise wrong(
            f"{what} by GpSimd, which has SBUF alone, where {far} does not lie: copy it there, or ask for another "
            "engine (Vector computes with whole numbers in float32)"
        )
