"""The element types that the engines and the DMA know, as NumPy dtypes."""

import ml_dtypes
import numpy as np

DTYPES: dict[str, np.dtype] = {
    "float32": np.dtype(np.float32),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float16": np.dtype(np.float16),
    "int32": np.dtype(np.int32),
    "int16": np.dtype(np.int16),
    "int8": np.dtype(np.int8),
    "uint8": np.dtype(np.uint8),
    "bool": np.dtype(np.bool_),
}
CODES = tuple(DTYPES)
MATMUL_DTYPES = ("bfloat16", "float16")


def device_dtype(dtype: str) -> str:
    """The dtype in which device memory holds a model's tensor: 64-bit integers as 32-bit ones, others as they are."""
    return "int32" if dtype == "int64" else dtype


def size_bytes(dtype: str) -> int:
    """Bytes of one element."""
    return DTYPES[dtype].itemsize
