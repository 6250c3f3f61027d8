"""Shapes and moves: name, call, reference, inputs."""

import numpy as np

from tests.relay_language.families.values import IMAGE, VECTOR, Case, X, Y
from tvm_neuron import relay

SHAPES: list[Case] = [
    ("reshape", lambda x: relay.reshape(x, (0, -1)), lambda x: x.reshape(3, 24), [X]),
    ("reshape -3 -2", lambda x: relay.reshape(x, (-3, -2)), lambda x: x.reshape(12, 6), [X]),
    ("reshape -4", lambda x: relay.reshape(x, (-4, -1, 3, -2)), lambda x: x.reshape(1, 3, 4, 6), [X]),
    ("reverse_reshape", lambda x: relay.reverse_reshape(x, (-1, 0)), lambda x: x.reshape(12, 6), [X]),
    ("expand_dims", lambda x: relay.expand_dims(x, -2, 2), lambda x: x[:, :, None, None], [X]),
    ("squeeze", lambda x: relay.squeeze(relay.expand_dims(x, 0), [0]), lambda x: x, [X]),
    ("transpose", lambda x: relay.transpose(x, (0, -1, 1)), lambda x: x.transpose(0, 2, 1), [X]),
    ("concatenate", lambda x, y: relay.concatenate([x, y], axis=-1), lambda x, y: np.concatenate([x, y], -1), [X, Y]),
    ("stack", lambda x, y: relay.stack([x, y], axis=1), lambda x, y: np.stack([x, y], 1), [X, Y]),
    ("split", lambda x: relay.split(x, 3, axis=2), lambda x: np.split(x, 3, 2), [X]),
    ("split at", lambda x: relay.split(x, (1, 5), axis=2), lambda x: np.split(x, (1, 5), 2), [X]),
    ("broadcast_to", lambda x: relay.broadcast_to(x, (2, 3, 4, 6)), lambda x: np.broadcast_to(x, (2, 3, 4, 6)), [X]),
    ("tile", lambda x: relay.tile(x, (1, 2, 3)), lambda x: np.tile(x, (1, 2, 3)), [X]),
    ("repeat", lambda x: relay.repeat(x, 2, axis=1), lambda x: np.repeat(x, 2, 1), [X]),
    ("reverse", lambda x: relay.reverse(x, axis=1), lambda x: x[:, ::-1], [X]),
    ("collapse_sum_to", lambda x: relay.collapse_sum_to(x, (4, 1)), lambda x: x.sum((0, 2))[:, None], [X]),
    (
        "layout_transform",
        lambda x: relay.layout_transform(relay.layout_transform(x, "NCHW", "NCHW2c"), "NCHW2c", "NHWC"),
        lambda x: x.transpose(0, 2, 3, 1),
        [IMAGE],
    ),
    (
        "blocks",
        lambda x: relay.layout_transform(x, "NCHW", "NCHW2c"),
        lambda x: x.reshape(2, 2, 2, 7, 9).transpose(0, 1, 3, 4, 2),
        [IMAGE],
    ),
    ("meshgrid", lambda x: relay.meshgrid([x, x]), lambda x: np.meshgrid(x, x, indexing="ij"), [VECTOR]),
]
