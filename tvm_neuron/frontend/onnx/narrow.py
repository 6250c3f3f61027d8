"""Tensors of dtypes narrower than a byte: int4, uint4, int2, uint2 and float4_e2m1fn.

No tensor of TVM holds them one element at a time, so they travel in the type of one byte that holds their values
(`runtime.tensors.CARRIERS`); the importer remembers what they are, since a Cast to them wraps or rounds.
"""

from dataclasses import dataclass

from tvm import relax


@dataclass(frozen=True)
class Narrow:
    """A tensor of `dtype` whose values `expr` holds in the type of one byte."""

    expr: relax.Expr
    dtype: str

    @property
    def ty(self) -> relax.TensorType:
        """The type of the tensor that travels."""
        return self.expr.ty


NARROW_OPERATORS = ("Cast", "CastLike", "DequantizeLinear", "QuantizeLinear")
"""Operators whose converters take and give narrow tensors."""
