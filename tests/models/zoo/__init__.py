"""Whole networks with seeded random weights, each written as an ONNX graph."""

from collections.abc import Callable

import onnx

from tests.models.zoo.inception import inception_v3
from tests.models.zoo.mobilenet import efficientnet_b0, mobilenet_v2, mobilenet_v3
from tests.models.zoo.openpose import openpose
from tests.models.zoo.resnet import resnet152
from tests.models.zoo.sequences import lstm_seq2seq, tacotron_encoder, wavenet
from tests.models.zoo.ssd import ssd300
from tests.models.zoo.unet import unet
from tests.models.zoo.vgg import vgg16
from tests.models.zoo.yolo import yolov3, yolov4

NETWORKS: dict[str, Callable[[], onnx.ModelProto]] = {
    make.__name__: make
    for make in (
        resnet152, vgg16, inception_v3, mobilenet_v2, mobilenet_v3, efficientnet_b0, unet, ssd300, yolov3, yolov4,
        openpose, lstm_seq2seq, wavenet, tacotron_encoder,
    )
}  # fmt: skip
"""By name: each is made with its usual size."""
