"""Kernels to kernels: arithmetic joined, constants gathered, narrow contractions packed."""
