"""Sequence networks: an LSTM encoder and decoder, a WaveNet-like stack, a Tacotron-like encoder."""

import math

import numpy as np
import onnx

from tests.models.zoo.layers import batch_norm
from tests.models.zoo.network import Network


def lstm_seq2seq(steps: int = 100, hidden: int = 256, vocabulary: int = 1000) -> onnx.ModelProto:
    """Two layers encode `steps` tokens; two more, begun in their last states, read the target and give its logits."""
    net = Network("lstm_seq2seq")
    source, target = (net.integers(name, (steps, 1), vocabulary) for name in ("source", "target"))
    x, states = _embed(net, source, vocabulary, hidden), []
    for _ in range(2):
        x, state = _lstm(net, x, hidden)
        states.append(state)
    y = _embed(net, target, vocabulary, hidden)
    for state in states:
        y, _ = _lstm(net, y, hidden, state)
    weight = net.normal(hidden, vocabulary)
    return net.model(net.op("LogSoftmax", net.scaled("MatMul", y, weight, gain=2.0), axis=-1))


def wavenet(samples: int = 1024, channels: int = 64, layers: int = 10, stacks: int = 2) -> onnx.ModelProto:
    """Causal convolutions with dilations 1, 2, 4, ..., gated, with residual and skip connections."""
    net = Network("wavenet", sound=(1, 1, samples))
    x, skips = _causal(net, "sound", channels, 2, 1), []
    for layer in range(layers * stacks):
        wide = _causal(net, x, 2 * channels, 2, 2 ** (layer % layers))
        split = net.op("Split", wide, outputs=2, axis=1, num_outputs=2)
        gated = net.op("Mul", net.op("Tanh", split), net.op("Sigmoid", f"{split}.1"))
        skips.append(_causal(net, gated, channels, 1, 1))
        x = net.op("Add", x, _causal(net, gated, channels, 1, 1, gain=0.3))
    y = net.op("Sum", *skips)
    for width in (channels, 256):
        y = _causal(net, net.op("Relu", y), width, 1, 1)
    return net.model(net.op("Softmax", y, axis=1))


def tacotron_encoder(characters: int = 64, width: int = 512, kinds: int = 60) -> onnx.ModelProto:
    """Embedded characters, three convolutions, an LSTM in both directions: [1, characters, width]."""
    net = Network("tacotron_encoder")
    x = _embed(net, net.integers("text", (1, characters), kinds), kinds, width)
    x = net.op("Transpose", x, perm=[0, 2, 1])
    for _ in range(3):
        weight = net.normal(width, width, 5)
        x = net.scaled("Conv", x, weight, kernel_shape=[5], pads=[2, 2])
        x = net.op("Relu", batch_norm(net, x))
    x, _ = _lstm(net, net.op("Transpose", x, perm=[2, 0, 1]), width // 2, both=True)
    return net.model(net.op("Transpose", x, perm=[1, 0, 2]))


def _embed(net: Network, tokens: str, vocabulary: int, width: int) -> str:
    return net.op("Gather", net.constant(net.normal(vocabulary, width), "embedding"), tokens)


def _lstm(
    net: Network, x: str, hidden: int, state: tuple[str, str] | None = None, both: bool = False
) -> tuple[str, tuple[str, str]]:
    """[T, N, C] to [T, N, hidden * directions], and the last (hidden, cell) states."""
    steps, batch, width = net.shape(x)
    ways = 2 if both else 1
    weights = [net.normal(ways, 4 * hidden, size, deviation=1 / math.sqrt(size)) for size in (width, hidden)]
    bias = net.normal(ways, 8 * hidden, deviation=0.1)
    names = [net.constant(array, "lstm") for array in (*weights, bias)]
    y = net.op(
        "LSTM", x, *names, *(("", *state) if state is not None else ()), outputs=3, hidden_size=hidden,
        direction="bidirectional" if both else "forward",
    )  # fmt: skip
    joined = net.op("Transpose", y, perm=[0, 2, 1, 3])
    flat = net.op("Reshape", joined, net.constant(np.array([steps, batch, ways * hidden]), "shape"))
    return flat, (f"{y}.1", f"{y}.2")


def _causal(net: Network, x: str, channels: int, kernel: int, dilation: int, gain: float = 1.0) -> str:
    bias = net.constant(net.normal(channels, deviation=0.1 * gain), "bias")
    weight = net.normal(channels, net.shape(x)[1], kernel)
    return net.scaled(
        "Conv", x, weight, bias, gain, kernel_shape=[kernel], dilations=[dilation], pads=[dilation * (kernel - 1), 0]
    )
