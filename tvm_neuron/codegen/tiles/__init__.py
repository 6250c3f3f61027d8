"""Kernels in tiles: where tensors exceed SBUF, several kernels run over some rows before the next rows."""
