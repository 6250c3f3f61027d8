"""Residual networks with their norms before the convolutions, over images or over volumes."""

from collections.abc import Callable, Sequence
from typing import Any

from tvm_neuron.relay.ir.expr import Function, var
from tvm_neuron.relay.testing.init import create_workload
from tvm_neuron.relay.testing.layers import batch_norm_infer, conv_kernel_layout, dense_add_bias, network, nn

_UNITS = {
    18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3), 200: (3, 24, 36, 3),
    269: (3, 30, 48, 8),
}  # fmt: skip


class Residual:
    """Builds one network: `conv` is the convolution, `rank` the number of spatial dimensions."""

    def __init__(self, conv: Callable[..., Any], rank: int, layout: str) -> None:
        self._conv = conv
        self._rank = rank
        self._layout = layout

    def _convolve(self, data: Any, name: str, channels: int, size: int, stride: int = 1) -> Any:
        return self._conv(
            data, name, channels=channels, kernel_size=(size,) * self._rank, strides=(stride,) * self._rank,
            padding=(size // 2,) * self._rank, data_layout=self._layout, kernel_layout=conv_kernel_layout(self._layout),
        )  # fmt: skip

    def _normalise(self, data: Any, name: str, **kwargs: Any) -> Any:
        return batch_norm_infer(data, name, epsilon=2e-5, axis=self._layout.index("C"), **kwargs)

    def _unit(self, data: Any, name: str, channels: int, stride: int, is_first: bool, is_bottleneck: bool) -> Any:
        narrow = channels // 4
        steps = [(narrow, 1, stride), (narrow, 3, 1), (channels, 1, 1)] if is_bottleneck else [
            (channels, 3, stride), (channels, 3, 1)
        ]  # fmt: skip
        body, shortcut = data, data
        for number, (count, size, step) in enumerate(steps, 1):
            body = nn["relu"](self._normalise(body, f"{name}_bn{number}"))
            if number == 1 and is_first:
                shortcut = self._convolve(body, f"{name}_sc", channels, 1, stride)
            body = self._convolve(body, f"{name}_conv{number}", count, size, step)
        return body + shortcut

    def network(
        self, units: Sequence[int], filters: Sequence[int], num_classes: int, data_shape: Sequence[int],
        is_bottleneck: bool, dtype: str, is_small: bool,
    ) -> Function:  # fmt: skip
        """The network; a small image keeps its size until the first stage."""
        pool = nn[f"max_pool{self._rank}d"]
        body = self._normalise(var("data", shape=data_shape, dtype=dtype), "bn_data", scale=False)
        if is_small:
            body = self._convolve(body, "conv0", filters[0], 3)
        else:
            body = nn["relu"](self._normalise(self._convolve(body, "conv0", filters[0], 7, 2), "bn0"))
            ones = (1,) * self._rank
            body = pool(body, (3,) * self._rank, (2,) * self._rank, padding=ones, layout=self._layout)
        for stage, (count, channels) in enumerate(zip(units, filters[1:], strict=True)):
            for unit in range(count):
                stride = 2 if stage and not unit else 1
                name = f"stage{stage + 1}_unit{unit + 1}"
                body = self._unit(body, name, channels, stride, not unit, is_bottleneck)
        body = nn["relu"](self._normalise(body, "bn1"))
        flat = nn["batch_flatten"](nn[f"global_avg_pool{self._rank}d"](body, layout=self._layout))
        return network(nn["softmax"](dense_add_bias(flat, "fc1", units=num_classes)))


def family(conv: Callable[..., Any], usual_layout: str, usual_shape: tuple[int, ...]) -> tuple[Any, Any]:
    """`get_net` and `get_workload` of the networks over images or volumes of this layout and shape by default."""

    def get_net(
        batch_size: int, num_classes: int, num_layers: int = 50, image_shape: tuple[int, ...] = usual_shape,
        layout: str = usual_layout, dtype: str = "float32",
    ) -> Function:  # fmt: skip
        """The network as a function.

        Raises ValueError: there is no such network.
        """
        height = image_shape[layout.index("H") - 1]
        units, filters, is_bottleneck = sizes(num_layers, height <= 28)
        shape = (batch_size, *image_shape)
        return Residual(conv, len(usual_shape) - 1, layout).network(
            units, filters, num_classes, shape, is_bottleneck, dtype, is_small=height <= 32
        )

    def get_workload(
        batch_size: int = 1, num_classes: int = 1000, num_layers: int = 18,
        image_shape: tuple[int, ...] = usual_shape, layout: str = usual_layout, dtype: str = "float32",
    ) -> Any:  # fmt: skip
        """The module of the network, and its weights."""
        return create_workload(get_net(batch_size, num_classes, num_layers, image_shape, layout, dtype))

    return get_net, get_workload


def sizes(num_layers: int, is_small: bool) -> tuple[tuple[int, ...], tuple[int, ...], bool]:
    """The units of each stage, the channels, and whether units have a bottleneck.

    Raises ValueError: there is no such network.
    """
    if is_small:
        per_unit = 9 if num_layers >= 164 else 6
        if (num_layers - 2) % per_unit:
            raise ValueError(f"num_layers is {num_layers}; for images this small it is 6n + 2, or 9n + 2 from 164 on")
        small = (16, 64, 128, 256) if per_unit == 9 else (16, 16, 32, 64)
        return ((num_layers - 2) // per_unit,) * 3, small, per_unit == 9
    if num_layers not in _UNITS:
        raise ValueError(f"num_layers is {num_layers}; there are {', '.join(map(str, _UNITS))}")
    filters = (64, 256, 512, 1024, 2048) if num_layers >= 50 else (64, 64, 128, 256, 512)
    return _UNITS[num_layers], filters, num_layers >= 50
