"""Networks of MXNet's model zoo and examples, small."""

import mxnet as mx
from mxnet.gluon import nn, rnn
from mxnet.gluon.model_zoo.vision import mobilenet, resnet

S = mx.sym


def networks():
    """name -> symbol, shapes of its inputs."""
    image = {"data": (1, 3, 32, 32)}
    few = [8, 8, 16, 24, 32]
    v1 = resnet.ResNetV1(resnet.BottleneckV1, [1, 2, 1, 1], few, classes=10, prefix="v1_")
    v2 = resnet.ResNetV2(resnet.BottleneckV2, [1, 2, 1, 1], few, classes=10, prefix="v2_")
    blocks = {
        "resnet_v1": v1, "resnet_v2": v2,
        "mobilenet": mobilenet.MobileNet(0.25, classes=10, prefix="m1_"),
        "mobilenet_v2": mobilenet.MobileNetV2(0.25, classes=10, prefix="m2_"),
    }  # fmt: skip
    found = {name: (block(S.var("data")), image) for name, block in blocks.items()}
    return found | {
        "ssd_head": (_ssd(), {"data": (1, 3, 32, 32)}),
        "lstm_classifier": (_lstm(), {"data": (6, 2)}),
        "lstm_unrolled": (_unrolled(), {"data": (2, 4, 5)}),
        "encoder_layer": (_encoder(), {"data": (6, 2, 16)}),
    }


def _ssd():
    """Two scales, each with classes, places and boxes, as example/ssd joins them."""
    data, scales = S.var("data"), []
    for number in range(2):
        data = S.Convolution(data, kernel=(3, 3), stride=(2, 2), pad=(1, 1), num_filter=8, name=f"conv{number}")
        data = S.Activation(data, act_type="relu", name=f"relu{number}")
        scales.append(data)
    places, classes, boxes = [], [], []
    for number, data in enumerate(scales):
        scaled = S.broadcast_mul(
            S.L2Normalization(data, mode="channel"), S.var(f"scale{number}_gamma", shape=(1, 8, 1, 1))
        )
        for found, width, name in ((places, 4, "loc"), (classes, 3, "cls")):
            head = S.Convolution(scaled, kernel=(3, 3), pad=(1, 1), num_filter=4 * width, name=f"{name}{number}")
            found.append(S.Flatten(S.transpose(head, axes=(0, 2, 3, 1))))
        boxes.append(S.Flatten(S.contrib.MultiBoxPrior(data, sizes=(0.3, 0.5), ratios=(1, 2, 0.5), clip=True)))
    scores = S.transpose(S.Reshape(S.Concat(*classes), shape=(0, -1, 3)), axes=(0, 2, 1))
    anchors = S.Reshape(S.Concat(*boxes), shape=(0, -1, 4))
    return S.Group([S.SoftmaxActivation(scores, mode="channel"), S.Concat(*places), anchors])


def _lstm():
    """A fused LSTM of Gluon over embedded words, whose parameters the network itself puts together."""
    net = nn.HybridSequential(prefix="words_")
    with net.name_scope():
        net.add(
            nn.Embedding(11, 8), rnn.LSTM(6, num_layers=2, bidirectional=True, input_size=8), nn.Dense(5, flatten=False)
        )
    return net(S.var("data"))


def _unrolled():
    """A cell of LSTM step by step, from states whose batch MXNet has to find out."""
    cell = mx.rnn.SequentialRNNCell()
    cell.add(mx.rnn.LSTMCell(6, prefix="l0_"))
    cell.add(mx.rnn.GRUCell(6, prefix="l1_"))
    outputs, _ = cell.unroll(4, S.var("data"), layout="NTC", merge_outputs=True)
    return S.SoftmaxOutput(S.FullyConnected(outputs, num_hidden=3, name="fc"), S.var("softmax_label"), name="softmax")


def _encoder():
    """A layer of a transformer of GluonNLP: attention with heads side by side."""
    data = S.var("data")
    mixed = S.FullyConnected(data, num_hidden=48, flatten=False, name="qkv")
    scores = S.softmax(S.contrib.interleaved_matmul_selfatt_qk(mixed, heads=4))
    attended = S.contrib.interleaved_matmul_selfatt_valatt(mixed, S.Dropout(scores, p=0.1), heads=4)
    hidden = S.LayerNorm(data + S.FullyConnected(attended, num_hidden=16, flatten=False, name="out"), name="ln1")
    inner = S.LeakyReLU(S.FullyConnected(hidden, num_hidden=32, flatten=False, name="ffn1"), act_type="gelu")
    return S.LayerNorm(hidden + S.FullyConnected(inner, num_hidden=16, flatten=False, name="ffn2"), name="ln2")
