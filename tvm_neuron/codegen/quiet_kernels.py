"""Kernels of gathers and powers without what TVM's print on a user's stderr: positions are checked before they run."""

from typing import Any

import tvm
from tvm import relax, te, topi

from tvm_neuron.runtime.tensors import as_numpy

_HIGH = 3
_POWER, _TAKE = "relax.power", "relax.take"
_usual = {name: tvm.ir.Op.get(name).get_attr("FLegalize") for name in (_POWER, _TAKE)}


def _legalize_take(bb: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    if call.attrs.mode != "fast":
        return _usual[_TAKE](bb, call)
    return bb.call_te(_take_all if call.attrs.axis is None else _take, *call.args, call.attrs.axis)


def _take(data: te.Tensor, positions: te.Tensor, axis: int) -> te.Tensor:
    first = int(axis) % len(data.shape)
    end = first + len(positions.shape)

    def element(*at: Any) -> Any:
        return data(*at[:first], positions(*at[first:end]), *at[end:])

    shape = [*data.shape[:first], *positions.shape, *data.shape[first + 1 :]]
    return te.compute(shape, element, "T_take", topi.tag.INJECTIVE)


def _take_all(data: te.Tensor, positions: te.Tensor, _axis: None) -> te.Tensor:
    """Positions among all elements in their order."""

    def element(*at: Any) -> Any:
        return data(*topi.utils.unravel_index(positions(*at), data.shape))

    return te.compute(positions.shape, element, "T_take", topi.tag.INJECTIVE)


def _legalize_power(bb: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    """The exponent is read: TVM warns of those from 3 on that are written into a kernel, as it does with one number."""
    base, exponent = call.args
    if isinstance(exponent, tvm.ir.GenericConst) and not exponent.ty.ndim and as_numpy(exponent.value) >= _HIGH:
        return bb.call_te(topi.power, base, exponent)
    return _usual[_POWER](bb, call)


QUIET_KERNELS = {_POWER: _legalize_power, _TAKE: _legalize_take}
"""For `relax.transform.LegalizeOps`."""
