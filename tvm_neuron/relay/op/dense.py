"""Products of matrices."""

from collections.abc import Mapping
from typing import Any

from tvm_neuron.relay.ir.ty import TensorType
from tvm_neuron.relay.op.declare import R, Tensor, Tensors, Types, operator


def _dense_weight(types: Types, attrs: Mapping[str, Any]) -> Mapping[int, TensorType]:
    data = types[0]
    if data is None or attrs["units"] is None:
        raise ValueError("the weight has no type, and units does not say it")
    return {1: TensorType([attrs["units"], data.shape[-1]], data.dtype)}


def _matmul_weight(types: Types, attrs: Mapping[str, Any]) -> Mapping[int, TensorType]:
    data = types[0]
    if data is None or attrs["units"] is None:
        raise ValueError("the second tensor has no type, and units does not say it")
    shape = [data.shape[-2 if attrs["transpose_a"] else -1], attrs["units"]]
    return {1: TensorType(shape[::-1] if attrs["transpose_b"] else shape, data.dtype)}


def _product(lhs: Any, rhs: Any, out_dtype: str) -> Any:
    """In the dtype asked for: both are cast first, so that whole numbers don't overflow on the way."""
    dtype = out_dtype or str(lhs.ty.dtype)
    cast = (R.astype(each, dtype) if str(each.ty.dtype) != dtype else each for each in (lhs, rhs))
    return R.matmul(*cast)


def _turned(data: Any, is_turned: bool) -> Any:
    if not is_turned:
        return data
    rank = int(data.ty.ndim)
    return R.permute_dims(data, [*range(rank - 2), rank - 1, rank - 2])


@operator("nn.dense", fill=_dense_weight)
def dense(data: Tensor, weight: Tensor, units: int | None = None, out_dtype: str = "") -> Tensor:
    """`data` [..., K] times the transpose of `weight` [N, K]."""
    return _product(data, _turned(weight, True), out_dtype)


@operator("nn.matmul", fill=_matmul_weight)
def matmul(
    tensor_a: Tensor, tensor_b: Tensor, units: int | None = None, out_dtype: str = "", transpose_a: bool = False,
    transpose_b: bool = False,
) -> Tensor:  # fmt: skip
    """The product of two matrices, each transposed if asked for."""
    return _product(_turned(tensor_a, transpose_a), _turned(tensor_b, transpose_b), out_dtype)


@operator("nn.batch_matmul")
def batch_matmul(
    tensor_a: Tensor, tensor_b: Tensor, out_dtype: str = "", transpose_a: bool = False, transpose_b: bool = True
) -> Tensor:
    """The products of matrices, one a batch; a batch of one goes with all. The second is transposed by default."""
    return _product(_turned(tensor_a, transpose_a), _turned(tensor_b, transpose_b), out_dtype)


@operator("einsum")
def einsum(data: Tensors, equation: str) -> Tensor:
    """The sum of products that the equation names."""
    return R.einsum(data, equation)
