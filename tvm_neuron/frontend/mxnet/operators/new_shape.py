"""new_shape: what the numbers of MXNet's Reshape mean."""

from collections.abc import Sequence
from math import prod

from tvm_neuron.frontend.refused import RefusedError

_KEEP, _INFER, _KEEP_REST, _JOIN, _SPLIT = 0, -1, -2, -3, -4


def new_shape(shape: Sequence[int], told: Sequence[int], is_reversed: bool) -> list[int]:
    """The sizes; 0 keeps one, -1 is what is left, -2 keeps the rest, -3 joins two, -4 splits one into the next two.

    Raises:
        RefusedError: they are not for so many dimensions.
    """
    if is_reversed and _SPLIT in told:
        raise RefusedError(f"shape = {tuple(told)} with reverse splits a dimension")
    own, found = [*shape][:: -1 if is_reversed else 1], list[int]()
    numbers = iter([*told][:: -1 if is_reversed else 1])
    try:
        for number in numbers:
            if number == _KEEP:
                found.append(own.pop(0))
            elif number == _KEEP_REST:
                found += own
                own = []
            elif number == _JOIN:
                found.append(own.pop(0) * own.pop(0))
            elif number == _SPLIT:
                whole, first, second = own.pop(0), next(numbers), next(numbers)
                found += [whole // second if first == _INFER else first, whole // first if second == _INFER else second]
            else:
                found.append(number)
                own = own[1:]
    except (IndexError, StopIteration) as error:
        raise RefusedError(f"shape = {tuple(told)} of a tensor of shape {list(shape)}") from error
    rest = prod(size for size in found if size != _INFER)
    if found.count(_INFER) == 1 and rest:
        found[found.index(_INFER)] = prod(shape) // rest
    if prod(found) != prod(shape):
        raise RefusedError(f"shape = {tuple(told)} of a tensor of shape {list(shape)}")
    return found[:: -1 if is_reversed else 1]
