"""call_flow: what `main` runs after the partition, in order, and which tensor each step has of which."""

from collections.abc import Mapping, Sequence
from typing import Any

import tvm
from tvm import relax

from tvm_neuron.frontend.origin import bindings_of, op_name, origin_of
from tvm_neuron.partition.plan import Plan

INPUTS = -1
"""The step that makes the model's inputs."""
Place = tuple[int, int] | None
"""The step that makes a tensor, and which of its results it is; None: known at compile time, or no tensor."""


def call_flow(mod: tvm.IRModule) -> dict[str, Any]:
    """For the manifest: names of steps, `neuron_<i>` for a subgraph and `cpu:<operator>`; what they read and write."""
    main, known = mod["main"], Plan()
    made: dict[relax.Var, list[Place]] = {var: [(INPUTS, index)] for index, var in enumerate(main.params)}
    order: list[str] = []
    steps: list[dict[str, Any]] = []
    for binding in bindings_of(main):
        var, value = binding.var, binding.value
        if not isinstance(value, relax.Call):
            made[var] = _places(value, made)
            continue
        is_program = isinstance(value.op, tvm.ir.GlobalVar)
        if not is_program and all(known.is_constant(arg) for arg in value.args):
            known.constants.add(var)  # folded at compile time
            continue
        types = list(var.ty.fields) if isinstance(var.ty, relax.TupleType) else [var.ty]
        made[var] = [(len(order), index) for index in range(len(types))]
        origin = origin_of(value)
        order.append(value.op.name_hint if is_program else f"cpu:{op_name(value)}")
        steps.append({
            "operator": origin.name if origin else "",
            "reads": [place for arg in value.args for place in _places(arg, made)],
            "writes": describe_tensors([f"{var.name}.{index}" for index in range(len(types))], types),
        })  # fmt: skip
    return {"order": order, "flow": {"steps": steps, "results": _places(main.body.body, made)}}


def describe_tensors(names: Sequence[str], types: Sequence[relax.Type]) -> list[dict[str, Any]]:
    """For the manifest: name, shape and dtype; -1 for a size that only a run tells."""
    rows = []
    for name, ty in zip(names, types, strict=True):
        has_shape = isinstance(ty, relax.TensorType) and isinstance(ty.shape, relax.ShapeExpr)
        unknown = [-1] * max(getattr(ty, "ndim", 0), 0)
        shape = [int(dim) if isinstance(dim, tvm.tirx.IntImm) else -1 for dim in ty.shape] if has_shape else unknown
        rows.append({"name": str(name), "shape": shape, "dtype": str(getattr(ty, "dtype", "object"))})
    return rows


def _places(expr: relax.Expr, made: Mapping[relax.Var, list[Place]]) -> list[Place]:
    if isinstance(expr, relax.Var):
        return made.get(expr, [None])
    if isinstance(expr, relax.Tuple):
        return [place for field in expr.fields for place in _places(field, made)]
    if isinstance(expr, relax.TupleGetItem):
        fields = _places(expr.tuple_value, made)
        return [fields[expr.index]] if expr.index < len(fields) else [None]
    return [None]
