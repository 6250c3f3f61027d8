"""ArgMax and ArgMin that choose the last of several equal elements."""

from collections.abc import Callable

from tvm import relax

from tvm_neuron.frontend.onnx.converters.converter import Converter, Node

_EXACT_TO = 2**24  # positions up to here are exact in float32, in which the core counts back


def _last(node: Node, find: Callable[..., relax.Expr]) -> relax.Expr | None:
    """The last position is the first one from behind."""
    if not node.attrs.get("select_last_index", 0) or not node.is_static():
        return None
    x, axis = node.inputs[0], node.attrs.get("axis", 0) % len(node.shape())
    extent = node.shape()[axis]
    if extent > _EXACT_TO:
        return None
    backwards = node.emit(relax.op.flip(x, axis))
    found = node.emit(find(backwards, axis, bool(node.attrs.get("keepdims", 1))))
    places = node.emit(relax.op.astype(found, "float32"))
    return relax.op.astype(node.emit(relax.op.subtract(relax.const(extent - 1.0, "float32"), places)), "int64")


CONVERTERS: dict[str, Converter] = {
    "ArgMax": lambda node: _last(node, relax.op.argmax),
    "ArgMin": lambda node: _last(node, relax.op.argmin),
}
