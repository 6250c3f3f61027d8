"""Shardy's meshes and shardings: over which devices the tensors of a shard_map lie, and how."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from math import prod
from typing import Any

import numpy as np

from tvm_neuron.frontend.refused import RefusedError
from tvm_neuron.spmd import Layout

Axes = Mapping[str, int]
"""The sizes of a mesh's axes by their names."""


def shardings_of(op: Any, key: str) -> list[Any]:
    """Those of an sdy.manual_computation's operands or results."""
    sdy = import_module("jaxlib.mlir.dialects.sdy")
    return [sdy.TensorShardingAttr(each) for each in sdy.TensorShardingPerValueAttr(op.attributes[key]).shardings]


def mesh_of(functions: Mapping[str, Any], op: Any, shardings: Sequence[Any]) -> Axes:
    """The one mesh on which an sdy.manual_computation runs.

    Raises:
        RefusedError: there are several, its devices have an order of their own, or an axis is left to XLA.
    """
    sdy = import_module("jaxlib.mlir.dialects.sdy")
    names = sorted({str(sharding.mesh_or_ref).removeprefix("@") for sharding in shardings})
    if len(names) != 1 or names[0] not in functions:
        raise RefusedError(f"its operands lie on other than one mesh of the module: {', '.join(names)}")
    mesh = sdy.MeshAttr(functions[names[0]].attributes["mesh"])
    axes = {str(axis.name): int(axis.size) for axis in map(sdy.MeshAxisAttr, mesh.axes)}
    order = [*mesh.device_ids]
    if order not in ([], [*range(prod(axes.values()))]):
        raise RefusedError(f"the devices of its mesh are in another order than 0, 1, ...: {order}")
    manual = sdy.ManualAxesAttr(op.attributes["manual_axes"])
    ours = [manual[number] for number in range(len(manual))]
    left = [name for name, size in axes.items() if size > 1 and name not in ours]
    if left:
        raise RefusedError(f"axes of its mesh are left to XLA: {', '.join(left)}; name all in shard_map's axis_names")
    return axes


def layout_of(axes: Axes, sharding: Any) -> Layout:
    """Device numbers count the mesh's last axis fastest, and so do parts of a dimension over several axes.

    Raises:
        RefusedError: a dimension lies on a part of an axis.
    """
    sdy = import_module("jaxlib.mlir.dialects.sdy")
    dimensions = [sdy.DimensionShardingAttr(each).axes for each in sharding.dimension_shardings]
    names = [[_axis(sdy.AxisRefAttr(axis)) for axis in dimension] for dimension in dimensions]
    sizes = [*axes.values()]
    places = []
    for core in range(prod(sizes)):
        at = dict(zip(axes, map(int, np.unravel_index(core, sizes)), strict=True))
        places.append(tuple(_number([at[axis] for axis in row], [axes[axis] for axis in row]) for row in names))
    return Layout(tuple(prod(axes[axis] for axis in row) for row in names), tuple(places))


def _axis(axis: Any) -> str:
    if axis.sub_axis_info is not None:
        raise RefusedError(f"a dimension lies on a part of the mesh's axis '{axis.name}'")
    return str(axis.name)


def _number(digits: Sequence[int], sizes: Sequence[int]) -> int:
    found = 0
    for digit, size in zip(digits, sizes, strict=True):
        found = found * size + digit
    return found
