"""Encoders of transformers as exporters write them: BERT over tokens, ViT over an image; GELU is made of Erf."""

import math

import numpy as np
import onnx

from tests.models.zoo.layers import conv
from tests.models.zoo.network import Network

VOCABULARY, POSITIONS, TYPES = 30522, 512, 2
MASKED = -10000.0  # added to the scores of tokens that are not there


def bert(batch: int = 1, tokens: int = 128, hidden: int = 768, heads: int = 12, layers: int = 12) -> onnx.ModelProto:
    """BERT-base: token ids, token types and a mask [batch, tokens] to hidden states and the pooled first token."""
    net = Network("bert")
    shape = (1, tokens)  # weights are scaled by what one row of the batch gives
    ids, types = net.integers("ids", shape, VOCABULARY), net.integers("types", shape, TYPES)
    there = net.op("Cast", net.integers("mask", shape, 2), to=onnx.TensorProto.FLOAT)
    there = net.op("Unsqueeze", there, net.constant(np.int64([1, 2]), "axes"))
    mask = net.op("Mul", net.op("Sub", net.constant(1.0), there), net.constant(MASKED))
    x = net.op("Add", _embedding(net, VOCABULARY, hidden, ids), _embedding(net, TYPES, hidden, types))
    x = net.op("Add", x, net.constant(net.normal(POSITIONS, hidden)[:tokens], "positions"))
    x = _norm(net, x)
    for _ in range(layers):
        x = _norm(net, net.op("Add", _attention(net, x, heads, mask), x))
        x = _norm(net, net.op("Add", _feed_forward(net, x), x))
    first = net.op("Gather", x, net.constant(np.int64(0), "first"), axis=1)
    model = net.model(x, net.op("Tanh", _dense(net, first, hidden)))
    for info in (*model.graph.input, *model.graph.output):
        info.type.tensor_type.shape.dim[0].dim_value = batch
    return model


def vit(
    size: int = 224, patch: int = 16, hidden: int = 768, heads: int = 12, layers: int = 12
) -> onnx.ModelProto:
    """ViT-B/16: an image [1, 3, size, size] to hidden states; norms come before attention and dense layers."""
    net = Network("vit", x=(1, 3, size, size))
    x = conv(net, "x", hidden, patch, stride=patch, pad=0)
    x = net.op("Transpose", _reshape(net, x, 0, hidden, -1), perm=[0, 2, 1])
    x = net.op("Concat", net.constant(net.normal(1, 1, hidden), "token"), x, axis=1)
    x = net.op("Add", x, net.constant(net.normal(*net.shape(x)[1:]), "positions"))
    for _ in range(layers):
        x = net.op("Add", _attention(net, _norm(net, x), heads), x)
        x = net.op("Add", _feed_forward(net, _norm(net, x)), x)
    return net.model(_norm(net, x))


def _embedding(net: Network, count: int, hidden: int, ids: str) -> str:
    return net.op("Gather", net.constant(net.normal(count, hidden), "embedding"), ids)


def _attention(net: Network, x: str, heads: int, mask: str = "") -> str:
    hidden = net.shape(x)[-1]
    q, k, v = (
        net.op("Transpose", _reshape(net, _dense(net, x, hidden), 0, 0, heads, -1), perm=perm)
        for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
    )
    scores = net.op("Div", net.op("MatMul", q, k), net.constant(math.sqrt(hidden // heads)))
    shares = net.op("Softmax", net.op("Add", scores, mask) if mask else scores, axis=-1)
    context = net.op("Transpose", net.op("MatMul", shares, v), perm=[0, 2, 1, 3])
    return _dense(net, _reshape(net, context, 0, 0, hidden), hidden)


def _feed_forward(net: Network, x: str) -> str:
    hidden = net.shape(x)[-1]
    wide = _dense(net, x, 4 * hidden)
    gate = net.op("Erf", net.op("Div", wide, net.constant(math.sqrt(2))))
    product = net.op("Mul", wide, net.op("Add", gate, net.constant(1.0)))
    return _dense(net, net.op("Mul", product, net.constant(0.5)), hidden)


def _dense(net: Network, x: str, width: int) -> str:
    product = net.scaled("MatMul", x, net.normal(net.shape(x)[-1], width))
    return net.op("Add", net.constant(net.normal(width, deviation=0.1), "bias"), product)


def _norm(net: Network, x: str) -> str:
    hidden = net.shape(x)[-1]
    scale = net.constant(1 + net.normal(hidden, deviation=0.1), "scale")
    shift = net.constant(net.normal(hidden, deviation=0.1), "shift")
    return net.op("LayerNormalization", x, scale, shift, axis=-1, epsilon=1e-12)


def _reshape(net: Network, x: str, *shape: int) -> str:
    return net.op("Reshape", x, net.constant(np.int64(shape), "shape"))
