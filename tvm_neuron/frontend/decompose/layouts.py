"""Transposed convolutions in layouts that TVM has no kernel for, as those that it has one for: channels first."""

from collections.abc import Callable
from typing import Any

from tvm import relax

from tvm_neuron.frontend.decompose.emitter import Emitter, Expansion


def _channels_first(operator: Callable[..., relax.Call], sides: str) -> Expansion:
    """For images with such sides, `HW` of two; layouts of blocks (`NCHW4c`) stay."""
    image, kernel = f"NC{sides}", f"IO{sides}"

    def expand(call: relax.Call, block: Emitter) -> relax.Var | None:
        attrs = call.attrs
        given = str(attrs.data_layout), str(attrs.kernel_layout), str(attrs.out_layout or attrs.data_layout)
        meant = image, kernel, image
        if given == meant or [*map(sorted, given)] != [*map(sorted, meant)]:
            return None
        data, weight = (
            block.emit(relax.op.permute_dims(value, [layout.index(each) for each in wanted]))
            for value, layout, wanted in zip(call.args, given[:2], meant[:2], strict=True)
        )
        lists: dict[str, Any] = {
            name: [int(each) for each in getattr(attrs, name)]
            for name in ("strides", "padding", "output_padding", "dilation")
        }
        found = block.emit(
            operator(data, weight, **lists, groups=int(attrs.groups), data_layout=image, kernel_layout=kernel,
                     out_dtype=str(call.ty.dtype))
        )  # fmt: skip
        return block.emit(relax.op.permute_dims(found, [image.index(each) for each in given[2]]))

    return expand


EXPANSIONS: dict[str, Expansion] = {
    "relax.nn.conv1d_transpose": _channels_first(relax.op.nn.conv1d_transpose, "W"),
    "relax.nn.conv2d_transpose": _channels_first(relax.op.nn.conv2d_transpose, "HW"),
    "relax.nn.conv3d_transpose": _channels_first(relax.op.nn.conv3d_transpose, "DHW"),
}
