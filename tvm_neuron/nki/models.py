"""call, register: kernels as parts of models, where they stand for an operator of the compiler's own."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tvm import relax

from tvm_neuron.errors import KernelError
from tvm_neuron.frontend.by_hand import KERNELS, Operand, call_by_hand
from tvm_neuron.isa.dtypes import DTYPES
from tvm_neuron.neff import Neff
from tvm_neuron.nki.kernel import Kernel, Traced, each_of
from tvm_neuron.program import DramTensor, Origin

Instead = Callable[..., relax.Expr]
"""Makes of the same operands what the compiler would have in a kernel's place."""


def register(name: str, kernel: Kernel, instead_of: Instead | None = None) -> None:
    """Lets models name the kernel, as the type of an ONNX node of the domain `tvm_neuron.nki`.

    With `instead_of` a report has both times.
    """
    KERNELS[name] = _InModel(kernel, instead_of)


def call(kernel: Kernel, *operands: relax.Expr, instead_of: Instead | None = None) -> relax.Call:
    """A call of the kernel in a Relax function, where it runs as a program of its own on the core.

    `instead_of` takes the same operands and gives what the compiler would have there; a report then has both times.

    Raises:
        KernelError: the kernel does not take such operands.
        ModelError: an operand is no tensor of a static shape.
    """
    wanted = _InModel(kernel, instead_of)
    names = (f"{kernel.name}_{number}" if number else kernel.name for number in count())
    name = next(name for name in names if KERNELS.get(name, wanted) == wanted)
    KERNELS[name] = wanted
    return call_by_hand(name, operands)


@dataclass(frozen=True)
class _InModel:
    kernel: Kernel
    instead_of: Instead | None = None

    def results(self, operands: Sequence[Operand]) -> list[tuple[tuple[int, ...], str]]:
        traced = self.kernel.trace(*map(_array, operands))
        return [(view.shape, view.tensor.dtype) for view in each_of(traced.returned)]

    def neff(self, symbol: str, chip: str, operands: Mapping[str, Operand], results: Sequence[str]) -> Neff:
        traced = self.kernel.on(chip).trace(*map(_array, operands.values()))
        views = each_of(traced.returned)
        names = {traced.assembled.names[view.tensor.number]: name for view, name in zip(views, results, strict=True)}
        if len(names) < len(views):
            raise KernelError(
                f"kernel '{self.kernel.name}' returns one tensor twice: a model needs a tensor for each result"
            )
        shapes = dict(zip(results, (view.shape for view in views), strict=True))
        names |= {f"arg{at}": name for at, name in enumerate(operands)}
        constants = {name: value for name, value in operands.items() if isinstance(value, np.ndarray)}
        return _renamed(traced, symbol, names, shapes, constants)


def _renamed(
    traced: Traced, symbol: str, names: Mapping[str, str], shapes: Mapping[str, tuple[int, ...]],
    constants: Mapping[str, NDArray[Any]],
) -> Neff:  # fmt: skip
    """The kernel's program with the model's names, in its order, and with constants as weights."""

    def rename(tensor: DramTensor) -> DramTensor:
        name = names.get(tensor.name, tensor.name)
        return replace(
            tensor, name=name, kind="weight" if name in constants else tensor.kind, shape=shapes.get(name, tensor.shape)
        )

    made = traced.neff()
    tensors = tuple(rename(tensor) for tensor in made.program.tensors)
    table = {tensor.name: tensor for tensor in tensors}
    origins = tuple(Origin(f"{symbol}, {PurePath(each.name).name}", each.op) for each in made.program.origins)
    weights = dict(made.weights) | {n: value.astype(DTYPES[table[n].dtype]) for n, value in constants.items()}
    return replace(
        made, name=symbol, program=replace(made.program, tensors=tensors, origins=origins), weights=weights,
        inputs=tuple(replace(i, name=names[i.name]) for i in made.inputs if names[i.name] not in constants),
        outputs=tuple(replace(i, name=names[i.name], shape=shapes[names[i.name]]) for i in made.outputs),
    )  # fmt: skip


def _array(operand: Operand) -> NDArray[Any]:
    if isinstance(operand, np.ndarray):
        return operand
    shape, dtype = operand
    return np.zeros(shape, DTYPES.get(dtype, dtype))
