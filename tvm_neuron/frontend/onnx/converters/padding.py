"""padding: what the attributes auto_pad and pads of convolutions and poolings mean."""

from collections.abc import Mapping, Sequence
from typing import Any


def padding(
    attrs: Mapping[str, Any], sizes: Sequence[int], extents: Sequence[int], strides: Sequence[int]
) -> list[int]:
    """Elements added before every spatial axis, then after; `extents` are the dilated kernel's sizes."""
    kind = attrs.get("auto_pad", b"NOTSET")
    if kind in (b"NOTSET", b""):
        return [int(pad) for pad in attrs.get("pads", (0,) * 2 * len(sizes))]
    if kind == b"VALID":
        return [0] * 2 * len(sizes)
    totals = [
        max((-(-size // step) - 1) * step + extent - size, 0)
        for size, extent, step in zip(sizes, extents, strides, strict=True)
    ]
    smaller, larger = [total // 2 for total in totals], [total - total // 2 for total in totals]
    return smaller + larger if kind == b"SAME_UPPER" else larger + smaller
