"""Einsum as products of two operands each, which the PE array takes; TVM's importer makes an opaque kernel of it."""

from string import ascii_letters

from tvm import relax

from tvm_neuron.frontend.onnx.converters.converter import Converter, Node


def _einsum(node: Node) -> relax.Expr | None:
    """From left to right; an axis is summed as soon as no operand to come, nor the result, has it."""
    if not all(node.is_static(position) for position in range(len(node.inputs))):
        return None
    labels, result = _labels(node)
    sizes: dict[str, int] = {}
    for position, names in enumerate(labels):
        for name, extent in zip(names, node.shape(position), strict=True):
            if sizes.setdefault(name, extent) != extent:
                return None  # axes behind an ellipsis broadcast
    value, here = node.inputs[0], labels[0]
    if len(labels) == 1:
        return relax.op.einsum((value,), f"{here}->{result}")
    for position in range(1, len(labels)):
        other = labels[position]
        later = set("".join(labels[position + 1 :]) + result)
        kept = "".join(dict.fromkeys(name for name in here + other if name in later))
        kept = result if position == len(labels) - 1 else kept
        value = node.emit(relax.op.einsum((value, node.inputs[position]), f"{here},{other}->{kept}"))
        here = kept
    return value


def _labels(node: Node) -> tuple[list[str], str]:
    """The axes of each operand and of the result as letters, an ellipsis spelled out."""
    equation = node.attrs["equation"].decode().replace(" ", "")
    left, arrow, result = equation.partition("->")
    operands = left.split(",")
    free = [letter for letter in ascii_letters if letter not in equation]
    ranks = [len(node.shape(position)) for position in range(len(operands))]
    hidden = [rank - len(names.replace("...", "")) for rank, names in zip(ranks, operands, strict=True)]
    most = free[: max(n if "..." in names else 0 for n, names in zip(hidden, operands, strict=True))]
    spelled = [
        names.replace("...", "".join(most[len(most) - n :])) for n, names in zip(hidden, operands, strict=True)
    ]
    if not arrow:
        once = sorted(name for name in set(left) - set(".,") if left.count(name) == 1)
        return spelled, "".join(most) + "".join(once)
    return spelled, result.replace("...", "".join(most))


CONVERTERS: dict[str, Converter] = {"Einsum": _einsum}
