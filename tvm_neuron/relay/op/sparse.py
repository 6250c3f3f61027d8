"""Products with sparse matrices, known when the model is compiled."""

from typing import Any

import numpy as np
import tvm
from tvm import relax

from tvm_neuron.errors import ModelError
from tvm_neuron.relay.op.declare import PUBLIC, R, Tensor, operator


@operator("nn.sparse_dense")
def _sparse_dense(
    dense_mat: Tensor, data: Tensor, indices: Tensor, indptr: Tensor, sparse_lhs: bool = False
) -> Tensor:
    """`dense_mat` times the transpose of a sparse matrix, in CSR or BSR; with `sparse_lhs` that times its transpose."""
    columns = int(dense_mat.ty.shape[1])
    sparse = relax.const(_as_dense(_known(data), _known(indices), _known(indptr), columns))
    lhs, rhs = (sparse, dense_mat) if sparse_lhs else (dense_mat, sparse)
    return R.matmul(lhs, R.permute_dims(rhs, [1, 0]))


_of_parts = PUBLIC.pop("nn.sparse_dense")


def sparse_dense(dense_mat: Any, sparse_mat: Any, sparse_lhs: bool = False) -> Any:
    """The product with a sparse matrix, which is a tuple of its data, indices and indptr; `sparse_lhs`: see above."""
    parts = [getattr(sparse_mat, name) for name in ("data", "indices", "indptr")]
    return _of_parts(dense_mat, *parts, sparse_lhs=sparse_lhs)


PUBLIC["nn.sparse_dense"] = sparse_dense


def _known(value: Any) -> Any:
    if not isinstance(value, tvm.ir.GenericConst):
        raise ModelError(
            "the sparse matrix is known only when the model runs; this target needs it as constants: see "
            "relay.build_module.bind_params_by_name"
        )
    return value.value.numpy()


def _as_dense(data: Any, indices: Any, indptr: Any, columns: int) -> Any:
    """The matrix with its zeros; elements that are given twice are added up."""
    blocks = data.reshape(-1, *(data.shape[1:] if data.ndim == 3 else (1, 1)))
    height, width = blocks.shape[1:]
    rows = len(indptr) - 1
    if len(indices) != len(blocks) or indptr[-1] != len(blocks) or (indices * width >= columns).any():
        raise ModelError(
            f"the sparse matrix has {len(blocks)} values, {len(indices)} indices, the last of indptr {indptr[-1]}, and "
            f"{columns} columns: they don't fit together"
        )
    tiled = np.zeros((rows, -(-columns // width), height, width), data.dtype)
    np.add.at(tiled, (np.repeat(np.arange(rows), np.diff(indptr)), indices), blocks)
    return np.ascontiguousarray(tiled.transpose(0, 2, 1, 3).reshape(rows * height, -1)[:, :columns])
