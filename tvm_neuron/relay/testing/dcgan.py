"""The generator of DCGAN (Radford et al.)."""

from typing import Any

from tvm_neuron.relay.ir.expr import Function, var
from tvm_neuron.relay.op import namespace
from tvm_neuron.relay.testing.init import create_workload
from tvm_neuron.relay.testing.layers import batch_norm_infer, conv2d_transpose, network, nn

_KERNELS = {"NCHW": "IOHW", "NHWC": "HWOI"}


def get_net(
    batch_size: int, random_len: int = 100, oshape: tuple[int, ...] = (3, 64, 64), ngf: int = 128, code: Any = None,
    layout: str = "NCHW", dtype: str = "float32",
) -> Function:  # fmt: skip
    """The network as a function of random numbers; `ngf` are the channels before the last layer.

    Raises ValueError: the image is not of 64 x 64, or the layout neither NCHW nor NHWC.
    """
    if oshape[-2:] != (64, 64) or layout not in _KERNELS:
        raise ValueError(f"oshape is {oshape} and layout '{layout}'; images are 64 x 64, layouts NCHW or NHWC")
    code = var("data", dtype=dtype, shape=(batch_size, random_len)) if code is None else code
    body = nn["relu"](nn["dense"](code, var("dense_weight"), units=16 * 8 * ngf))
    body = namespace()["reshape"](body, (-1, 8 * ngf, 4, 4) if layout == "NCHW" else (-1, 4, 4, 8 * ngf))
    for number, channels in enumerate((4 * ngf, 2 * ngf, ngf, oshape[0]), 2):
        is_last = number == 5
        body = conv2d_transpose(
            body, f"g{number}_deconv", kernel_size=(4, 4), strides=(2, 2), channels=channels, padding=(1, 1),
            output_padding=(0, 0), data_layout=layout, kernel_layout=_KERNELS[layout],
        )  # fmt: skip
        if not is_last:
            norm = batch_norm_infer(body, f"g{number}_batch_norm", scale=False, axis=layout.index("C"))
            body = nn["relu"](norm)
    return network(namespace()["tanh"](body))


def get_workload(
    batch_size: int, oshape: tuple[int, ...] = (3, 64, 64), ngf: int = 128, random_len: int = 100,
    layout: str = "NCHW", dtype: str = "float32",
) -> Any:  # fmt: skip
    """The module of the network, and its weights."""
    return create_workload(get_net(batch_size, random_len, oshape, ngf, layout=layout, dtype=dtype))
