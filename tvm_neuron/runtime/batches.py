"""Batches of any size on a library compiled for one: a larger one is split, what is left over padded.

The padding repeats the last row, so that it is as harmless as the user's own data, and is cut off the outputs.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tvm_neuron.errors import InputError
from tvm_neuron.neff import TensorInfo

Arrays = dict[str, np.ndarray]


def batch_of(infos: Sequence[TensorInfo]) -> int:
    """The batch that a library was compiled for: the first dimension that all its inputs have in common.

    Raises:
        InputError: they have none.
    """
    sizes = {info.shape[0] if info.shape else 0 for info in infos}
    if len(sizes) != 1 or 0 in sizes:
        shapes = ", ".join(f"'{info.name}' {list(info.shape)}" for info in infos)
        raise InputError(f"the inputs have no batch in common, so it can't be of any size: {shapes}")
    return sizes.pop()


def rows_of(infos: Sequence[TensorInfo], values: Mapping[str, np.ndarray]) -> int:
    """The number of rows given, the same for every input.

    Raises:
        InputError: it differs from input to input, or is none.
    """
    rows = {info.name: values[info.name].shape[0] if values[info.name].ndim else 0 for info in infos}
    if len(set(rows.values())) != 1 or 0 in rows.values():
        given = ", ".join(f"'{name}' {count}" for name, count in rows.items())
        raise InputError(f"every input must have the same number of rows, from 1 on: {given}")
    return next(iter(rows.values()))


def parts(values: Mapping[str, np.ndarray], rows: int, batch: int) -> Iterator[tuple[Arrays, int]]:
    """The values in parts of `batch` rows, and how many rows of each part are real."""
    for begin in range(0, rows, batch):
        real = min(batch, rows - begin)
        positions = np.minimum(np.arange(begin, begin + batch), rows - 1)
        yield {name: array[positions] for name, array in values.items()}, real


def joined(results: Sequence[Sequence[np.ndarray]], real: Sequence[int]) -> list[np.ndarray]:
    """The outputs of all parts, one after the other, without what the padding gave."""
    return [
        np.concatenate([output[:count] for output, count in zip(outputs, real, strict=True)])
        for outputs in zip(*results, strict=True)
    ]
