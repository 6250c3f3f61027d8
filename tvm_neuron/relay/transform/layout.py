"""ConvertLayout: convolutions in the layout asked for, and what lies between them in it, too."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tvm

from tvm_neuron.errors import OptionError
from tvm_neuron.relay.ir.expr import Attrs, Call, Function, If, Let, Op, Tuple, TupleGetItem
from tvm_neuron.relay.ir.functor import children, post_order, rebuilt
from tvm_neuron.relay.ir.ty import TensorType
from tvm_neuron.relay.op import OPERATORS, namespace
from tvm_neuron.relay.op.kinds import OpPattern, pattern_of
from tvm_neuron.relay.transform.passes import function_pass_of

_OPS = namespace()
_KERNELS = {"NHWC": "HWIO", "NCHW": "OIHW", "NWC": "WIO", "NCW": "OIW", "NDHWC": "DHWIO", "NCDHW": "OIDHW"}


def ConvertLayout(desired_layouts: Mapping[str, Sequence[str]]) -> tvm.transform.Pass:  # noqa: N802 - Relay's name
    """Operators by name in other layouts: of their data, then of their weights; `default` is the usual one.

    Raises OptionError: an operator has no layout.
    """
    for name in desired_layouts:
        if name not in OPERATORS or not {"data_layout", "layout"} & OPERATORS[name].attributes.keys():
            raise OptionError(f"ConvertLayout: '{name}' is no operator of Relay with a layout")
    wanted = {str(name): [str(each) for each in layouts] for name, layouts in desired_layouts.items()}
    return function_pass_of("ConvertLayout", lambda func, _mod: _converted(func, wanted), opt_level=3)


@dataclass(frozen=True)
class _Laid:
    """An expression in layout `actual` for a value in layout `meant`; both are empty where it has none."""

    expr: Any
    meant: str = ""
    actual: str = ""

    def plain(self) -> Any:
        """The value as it is meant."""
        return self.expr if self.meant == self.actual else _moved(self.expr, self.actual, self.meant)


def _moved(expr: Any, source: str, target: str) -> Any:
    return expr if source == target else _OPS["layout_transform"](expr, source, target)


def _converted(func: Function, wanted: Mapping[str, Sequence[str]]) -> Function:
    laid: dict[Any, _Laid] = {}
    for node in post_order(func.body, lambda node: [] if isinstance(node, Function | If | Let) else children(node)):
        laid[node] = _converted_node(node, laid, wanted)
    return Function(func.params, laid[func.body].plain(), None, attrs=func.attrs, span=func.span)


def _converted_node(node: Any, laid: Mapping[Any, _Laid], wanted: Mapping[str, Sequence[str]]) -> _Laid:
    if isinstance(node, Call) and isinstance(node.op, Op):
        if str(node.op.name) in wanted:
            return _with_layout(node, laid, wanted[str(node.op.name)])
        follower = _follower(node, laid)
        if follower is not None:
            return follower
    if isinstance(node, TupleGetItem) and laid[node.tuple_value].meant and int(node.index) == 0:
        whole = laid[node.tuple_value]  # of a batch normalisation
        return _Laid(TupleGetItem(whole.expr, 0, node.span), whole.meant, whole.actual)
    if not isinstance(node, Call | Tuple | TupleGetItem):
        return _Laid(node)
    return _Laid(rebuilt(node, _Plain(laid)))


class _Plain(dict[Any, Any]):
    """The parts of expressions as they are meant."""

    def __init__(self, laid: Mapping[Any, _Laid]) -> None:
        super().__init__()
        self._laid = laid

    def __missing__(self, node: Any) -> Any:
        return self._laid[node].plain()


def _with_layout(call: Call, laid: Mapping[Any, _Laid], layouts: Sequence[str]) -> _Laid:
    attrs = call.attrs.as_dict()
    key = "data_layout" if "data_layout" in attrs else "layout"
    usual = OPERATORS[str(call.op.name)].attributes
    meant, actual = attrs[key], usual[key] if layouts[0] == "default" else layouts[0]
    changed = attrs | {key: actual, "out_layout": ""}
    args = [_in(laid[call.args[0]], meant, actual), *(laid[arg].plain() for arg in call.args[1:])]
    if "kernel_layout" in attrs:
        kernel = layouts[1] if len(layouts) > 1 and layouts[1] != "default" else _kernel(actual, attrs)
        args[1] = _moved(args[1], attrs["kernel_layout"], kernel)
        changed["kernel_layout"] = kernel
    made = Call(call.op, args, Attrs(changed), call.type_args, call.span)
    out = attrs.get("out_layout") or meant
    return _Laid(_moved(made, actual, out)) if sorted(out) != sorted(actual) else _Laid(made, out, actual)


def _kernel(layout: str, attrs: Mapping[str, Any]) -> str:
    is_depthwise = attrs["groups"] > 1 and attrs["groups"] == attrs["channels"]
    return "HWOI" if layout == "NHWC" and is_depthwise else _KERNELS.get(layout, str(attrs["kernel_layout"]))


def _in(value: _Laid, meant: str, actual: str) -> Any:
    return value.expr if (value.meant, value.actual) == (meant, actual) else _moved(value.plain(), meant, actual)


def _follower(call: Call, laid: Mapping[Any, _Laid]) -> _Laid | None:
    """The call in the layout that its operands have, if it may be; None where it may not."""
    is_list = len(call.args) == 1 and isinstance(call.args[0], Tuple)
    operands = list(call.args[0].fields) if is_list else list(call.args)
    found = next((laid[each] for each in operands if laid[each].meant), None)
    if found is None:
        return None
    meant, actual, attrs = found.meant, found.actual, call.attrs.as_dict()
    if "layout" in attrs and attrs["layout"] == meant and not attrs.get("out_layout") and len(operands) == 1:
        changed = attrs | {"layout": actual}
    elif call.op.name in ("nn.bias_add", "nn.prelu", "nn.batch_norm", "concatenate"):
        changed = attrs | {"axis": actual.index(meant[int(attrs["axis"]) % len(meant)])}
        operands = operands if is_list else operands[:1]
    elif pattern_of(call.op) <= OpPattern.BROADCAST and isinstance(call.ty, TensorType):
        changed = attrs
    else:
        return None
    if len(call.ty.shape if isinstance(call.ty, TensorType) else meant) != len(meant):
        return None
    moved = [_spread(each, laid[each], meant, actual) for each in operands]
    args = [Tuple(moved)] if is_list else [*moved, *(laid[each].plain() for each in call.args[len(moved) :])]
    return _Laid(Call(call.op, args, Attrs(changed), call.type_args, call.span), meant, actual)


def _spread(node: Any, value: _Laid, meant: str, actual: str) -> Any:
    """An operand in the layout; one of fewer dimensions gets those that broadcasting would give it."""
    rank = len(node.ty.shape)
    if not rank or value.meant:
        return _in(value, meant, actual) if rank else value.plain()
    whole = value.plain() if rank == len(meant) else _OPS["expand_dims"](value.plain(), 0, len(meant) - rank)
    return _moved(whole, meant, actual)
