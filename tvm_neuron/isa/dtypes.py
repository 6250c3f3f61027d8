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
    "float8_e4m3": np.dtype(ml_dtypes.float8_e4m3),
    "float8_e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "uint16": np.dtype(np.uint16),
    "uint32": np.dtype(np.uint32),
}
CODES = tuple(DTYPES)
FIRST_CODES = 8  # what NEFFs up to version 1.6 know
MATMUL_DTYPES = ("bfloat16", "float16")
WORDS = ("int32", "uint32")  # of operations on bits, and of places
FLOAT8 = ("float8_e4m3", "float8_e5m2")


def device_dtype(dtype: str) -> str:
    """The dtype in which device memory holds a model's tensor: 64-bit integers as 32-bit ones, others as they are."""
    return "int32" if dtype == "int64" else dtype


def size_bytes(dtype: str) -> int:
    """Bytes of one element."""
    return DTYPES[dtype].itemsize
