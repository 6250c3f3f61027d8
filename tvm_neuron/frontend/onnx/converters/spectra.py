"""Fourier transforms: products with constant matrices, which the PE array computes."""

import numpy as np
from tvm import relax

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.onnx.converters.converter import Converter, Node


def _dft(node: Node) -> relax.Expr:
    """The discrete Fourier transform along one axis; the last axis holds the real and the imaginary part."""
    rank = len(node.shape())
    axis = node.attrs.get("axis", 1)
    if node.opset >= 20:
        given = _number(node, 2)
        axis = -2 if given is None else given
    axis %= rank
    inverse, onesided = bool(node.attrs.get("inverse", 0)), bool(node.attrs.get("onesided", 0))
    size = node.shape()[axis]
    length = _number(node, 1)
    if length is None:
        length = 2 * (size - 1) if inverse and onesided else size
    order = [at for at in range(rank) if at not in (axis, rank - 1)] + [axis, rank - 1]
    moved = node.emit(relax.op.permute_dims(node.inputs[0], order))
    found = _transformed(node, moved, length, inverse, onesided)
    return relax.op.permute_dims(found, [order.index(at) for at in range(rank)])


def _stft(node: Node) -> relax.Expr:
    """Transforms of frames of the signal, `frame_step` apart, each weighted by the window."""
    step, length = _number(node, 1), _number(node, 3)
    if step is None:
        raise ModelError("its frame_step is missing")
    size = node.shape()[1]
    if length is None:
        length = node.shape(2)[0] if node.given(2) is not None else size
    count = 1 + (size - length) // step
    places = np.arange(count)[:, None] * step + np.arange(length)
    signal = node.inputs[0]
    if len(node.shape()) == 2:
        signal = node.emit(relax.op.expand_dims(signal, 2))
    batch, _, parts = (int(dim) for dim in signal.ty.shape)
    taken = node.emit(relax.op.take(signal, relax.const(places.reshape(-1), "int64"), 1, mode="clip"))
    frames = node.emit(relax.op.reshape(taken, (batch, count, length, parts)))
    if node.given(2) is not None:
        frames = node.emit(relax.op.multiply(frames, node.emit(relax.op.expand_dims(node.inputs[2], 1))))
    return _transformed(node, frames, length, False, bool(node.attrs.get("onesided", 1)))


def _transformed(node: Node, value: relax.Expr, length: int, inverse: bool, onesided: bool) -> relax.Expr:
    """[..., size, parts] to [..., bins, 2], or [..., length, 1] where the result is real."""
    *outer, size, parts = (int(dim) for dim in value.ty.shape)
    matrix = _matrix(size, parts, length, inverse, onesided)
    rows, bins, results = matrix.shape
    dtype = str(value.ty.dtype)
    flat = node.emit(relax.op.reshape(value, (*outer, rows)))
    product = node.emit(relax.op.matmul(flat, relax.const(matrix.reshape(rows, -1).astype(dtype), dtype)))
    return node.emit(relax.op.reshape(product, (*outer, bins, results)))


def _matrix(size: int, parts: int, length: int, inverse: bool, onesided: bool) -> np.ndarray:
    """[size * parts, bins, results]: what each part of each element contributes, as NumPy transforms unit vectors."""
    units = np.eye(size)[:, None] * np.array([1, 1j][:parts])[:, None]
    units = units.reshape(size * parts, size)
    if inverse and onesided:
        return np.asarray(np.fft.irfft(units, length))[..., None]
    found = (np.fft.ifft if inverse else np.fft.fft)(units, length)
    found = found[:, : length // 2 + 1] if onesided else found
    return np.stack([found.real, found.imag], -1)


def _number(node: Node, position: int) -> int | None:
    value = node.constant(position)
    if value is None and node.given(position) is not None:
        raise ModelError("its length, step or axis is known at run time only, so its result has no static shape")
    return None if value is None else int(value.reshape(()))


def _mel_weight_matrix(node: Node) -> None:
    """Computed at import where its operands are known, which is what makes its shape."""


CONVERTERS: dict[str, Converter] = {"DFT": _dft, "MelWeightMatrix": _mel_weight_matrix, "STFT": _stft}
