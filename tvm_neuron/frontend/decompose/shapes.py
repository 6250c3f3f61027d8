"""What expansions ask of a tensor's type."""

from math import prod

from tvm import relax, tirx

KEPT_ELEMS = 1 << 16
"""A tensor of up to so many elements stays float32 in every precision, so that positions in it are exact."""
EXACT_POSITIONS = 256
"""Whole numbers up to this are exact in bfloat16 as well."""


def static_shape(value: relax.Expr) -> tuple[int, ...] | None:
    """The shape of a tensor, None where it is not known."""
    shape = getattr(value.ty, "shape", None)
    if not isinstance(shape, relax.ShapeExpr) or not all(isinstance(dim, tirx.IntImm | int) for dim in shape):
        return None
    return tuple(int(dim) for dim in shape)


def is_float(value: relax.Expr) -> bool:
    """Whether its elements are floating-point numbers."""
    return "float" in str(value.ty.dtype)


def has_exact_positions(shape: tuple[int, ...], axis: int) -> bool:
    """Whether positions along `axis` can be computed with in a tensor of that shape."""
    return prod(shape) <= KEPT_ELEMS or shape[axis] <= EXACT_POSITIONS
