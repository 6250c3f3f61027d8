"""Kernels to instructions: tiles, transfers, matmuls and the arithmetic on the way out."""
