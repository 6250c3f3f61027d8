"""Inception v3 (Szegedy et al. 2015), as TVM 0.18 had it."""

from typing import Any, TypeAlias

from tvm_neuron.relay.ir.expr import Function, var
from tvm_neuron.relay.op import namespace
from tvm_neuron.relay.testing.init import create_workload
from tvm_neuron.relay.testing.layers import batch_norm_infer, conv2d, network, nn

Step: TypeAlias = tuple[str, int, tuple[int, int], int]
"""A convolution: what ends its name, channels, size of the window, stride."""
Tower: TypeAlias = list[Step]

_ONE, _WIDE, _HIGH = (1, 1), (1, 7), (7, 1)
_HALVED = ("max", 2, 0)


def _tower(prefix: str, *steps: tuple[int, tuple[int, int]], halves: bool = False) -> Tower:
    """Convolutions one after the other; with `halves` the last one has every second position."""
    ends = ["_conv", *(f"_conv_{number}" for number in range(1, len(steps)))]
    strides = [1] * (len(steps) - 1) + [2 if halves else 1]
    return [(prefix + end, *step, stride) for end, step, stride in zip(ends, steps, strides, strict=True)]


def _five(projected: int) -> tuple[list[Tower], int]:
    """Windows of 5 x 5, and of 3 x 3 twice."""
    towers = [
        _tower("", (64, _ONE)),
        _tower("_tower", (48, _ONE), (64, (5, 5))),
        _tower("_tower_1", (64, _ONE), (96, (3, 3)), (96, (3, 3))),
    ]
    return towers, projected


def _seven(channels: int) -> tuple[list[Tower], int]:
    """Windows of 7 x 7 as rows and columns."""
    many, last = (channels, _HIGH), (192, _WIDE)
    towers = [
        _tower("", (192, _ONE)),
        _tower("_tower", (channels, _ONE), (channels, _WIDE), (192, _HIGH)),
        _tower("_tower_1", (channels, _ONE), many, (channels, _WIDE), many, last),
    ]
    return towers, 192


_FIRST_HALVING = [
    _tower("", (384, (3, 3)), halves=True),
    _tower("_tower", (64, _ONE), (96, (3, 3)), (96, (3, 3)), halves=True),
]
_SECOND_HALVING = [
    _tower("_tower", (192, _ONE), (320, (3, 3)), halves=True),
    _tower("_tower_1", (192, _ONE), (192, _WIDE), (192, _HIGH), (192, (3, 3)), halves=True),
]
_UNITS = [
    _five(32), _five(64), _five(64), (_FIRST_HALVING, 0),
    _seven(128), _seven(160), _seven(160), _seven(192), (_SECOND_HALVING, 0),
]  # fmt: skip
"""Towers of each unit, and the channels that its pooling is projected to; 0 where that halves the image instead."""


def _conv(data: Any, step: Step, unit: str, padding: tuple[int, int] | None = None) -> Any:
    """A convolution, a norm and a ReLU; padded so that only its stride makes the image smaller."""
    name, channels, kernel, stride = step
    if padding is None:
        padding = ((kernel[0] - 1) // 2, (kernel[1] - 1) // 2) if stride == 1 else (0, 0)
    body = conv2d(
        data, f"{unit}{name}_conv1", channels=channels, kernel_size=kernel, strides=(stride, stride), padding=padding
    )
    return nn["relu"](batch_norm_infer(body, f"{unit}{name}_bn", epsilon=2e-5, scale=False))


def _pooled(data: Any, kind: str, stride: int, padding: int) -> Any:
    options = {"count_include_pad": True} if kind == "avg" else {}
    return nn[f"{kind}_pool2d"](data, (3, 3), (stride, stride), padding=(padding, padding), **options)


def _unit(data: Any, towers: list[Tower], projected: int, pool: str, name: str, has_ends: bool = False) -> Any:
    """The towers and a pooling of the same image, side by side; with `has_ends` all but the first tower end in two."""
    parts = []
    for number, tower in enumerate(towers):
        body = data
        for step in tower:
            body = _conv(body, step, name)
        if has_ends and number:
            prefix = tower[0][0].removesuffix("_conv")
            ends = (("_mixed_conv", (1, 3)), ("_mixed_conv_1", (3, 1)))
            parts += [_conv(body, (prefix + end, 384, kernel, 1), name) for end, kernel in ends]
        else:
            parts.append(body)
    if projected:
        parts.append(_conv(_pooled(data, pool, 1, 1), ("_tower_2_conv", projected, _ONE, 1), name))
    else:
        parts.append(_pooled(data, *_HALVED))
    return namespace()["concatenate"](parts, axis=1)


def get_net(batch_size: int, num_classes: int, image_shape: tuple[int, ...], dtype: str) -> Function:
    """The network as a function; images are at least 299 x 299, for the last pooling's window of 8 x 8."""
    body = var("data", shape=(batch_size, *image_shape), dtype=dtype)
    body = _conv(body, ("conv", 32, (3, 3), 2), "")
    body = _conv(body, ("conv_1", 32, (3, 3), 1), "", (0, 0))
    body = _pooled(_conv(body, ("conv_2", 64, (3, 3), 1), ""), *_HALVED)
    body = _conv(body, ("conv_3", 80, _ONE, 1), "")
    body = _pooled(_conv(body, ("conv_4", 192, (3, 3), 1), "", (0, 0)), *_HALVED)
    for number, (towers, projected) in enumerate(_UNITS):
        body = _unit(body, towers, projected, "avg", f"mixed_{number}" if number else "mixed")
    last = [_tower("", (320, _ONE)), _tower("_tower", (384, _ONE)), _tower("_tower_1", (448, _ONE), (384, (3, 3)))]
    for number, pool in ((9, "avg"), (10, "max")):
        body = _unit(body, last, 192, pool, f"mixed_{number}", has_ends=True)
    body = nn["avg_pool2d"](body, (8, 8), (1, 1), count_include_pad=True)
    scores = nn["dense"](nn["batch_flatten"](body), var("fc1_weight"), units=num_classes)
    return network(nn["softmax"](nn["bias_add"](scores, var("fc2_bias"), axis=-1)))


def get_workload(
    batch_size: int = 1, num_classes: int = 1000, image_shape: tuple[int, ...] = (3, 299, 299), dtype: str = "float32"
) -> Any:
    """The module of the network, and its weights."""
    return create_workload(get_net(batch_size, num_classes, image_shape, dtype))
