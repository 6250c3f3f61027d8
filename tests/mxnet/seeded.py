"""seeded: the same numbers in every version of NumPy, so that recordings need not hold the weights of networks."""

from zlib import crc32

import numpy as np


def seeded(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Weights for a variable of this name: variances and scales are positive, matrices keep the size of data."""
    rng = np.random.RandomState(crc32(name.encode()))
    if name.endswith(("gamma", "var")):
        return rng.uniform(0.5, 1.5, shape).astype("float32")
    inputs = max(int(np.prod(shape[1:])), 1) if len(shape) > 1 else 9
    return (rng.standard_normal(shape) / np.sqrt(inputs)).astype("float32")
