"""Windows over images: pools in every form; resizes."""

import numpy as np

from tests.random_models.growth import Growth
from tests.random_models.steps.linear import auto_pad, image
from tests.random_models.value import Value


def _window(g: Growth, x: Value, may_dilate: bool) -> dict[str, object]:
    kernel, strides, dilations, before, after = [], [], [], [], []
    for extent in x.shape[2:]:
        k = g.draw(1, min(5, extent))
        d = g.one_of([1, 1, 2]) if may_dilate and (k - 1) * 2 < extent else 1
        kernel.append(k)
        dilations.append(d)
        strides.append(g.one_of([1, 1, 2, 3]))
        before.append(g.draw(0, k - 1) if g.chance(0.5) else 0)
        after.append(g.draw(0, k - 1) if g.chance(0.5) else 0)
    window: dict[str, object] = {"kernel_shape": kernel, "strides": strides, "pads": before + after}
    if may_dilate:
        window["dilations"] = dilations
    if g.chance(0.2):
        window = {"kernel_shape": kernel, "strides": strides, "auto_pad": auto_pad(g, x.shape[2:], kernel, strides)}
    elif g.chance(0.3):
        window["ceil_mode"] = 1
    return window


def max_pool(g: Growth) -> None:
    x = image(g, g.one_of([1, 2, 2, 2, 3]))
    if g.chance(0.15):
        g.add_many("MaxPool", [x], 2, **_window(g, x, False))
    else:
        g.add("MaxPool", x, **_window(g, x, g.chance(0.3)))


def max_pool_of_bytes(g: Growth) -> None:
    x = g.of_dtype(("uint8", "int8"), 4)
    g.add("MaxPool", x, **_window(g, x, False))


def average_pool(g: Growth) -> None:
    x = image(g, g.one_of([1, 2, 2, 2, 3]))
    g.add("AveragePool", x, count_include_pad=g.draw(0, 1), **_window(g, x, g.opset >= 19 and g.chance(0.2)))


def lp_pool(g: Growth) -> None:
    x = image(g, 2)
    g.add("LpPool", x, p=g.draw(1, 3), **{k: v for k, v in _window(g, x, False).items() if k != "ceil_mode"})


def global_pool(g: Growth) -> None:
    x = image(g, g.one_of([1, 2, 2]))
    g.add(g.one_of(["GlobalAveragePool", "GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool"]), x)


def resize(g: Growth) -> None:
    x = image(g, g.one_of([1, 2, 2, 2]))
    mode = g.one_of(["nearest", "nearest", "linear", "linear", "cubic"])
    if mode == "cubic" and x.rank != 4:
        mode = "linear"
    attributes: dict[str, object] = {
        "mode": mode,
        "coordinate_transformation_mode": g.one_of(
            ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel",
             *(["half_pixel_symmetric"] if g.opset >= 19 else [])]
        ),
    }  # fmt: skip
    if mode == "nearest":
        attributes["nearest_mode"] = g.one_of(["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
    if mode == "cubic":
        attributes["cubic_coeff_a"] = g.one_of([-0.75, -0.5])
        attributes["exclude_outside"] = g.draw(0, 1)
    if g.opset >= 18 and mode != "nearest" and g.chance(0.2):
        attributes["antialias"] = 1
    if g.chance(0.5):
        scales = [1.0, 1.0, *(g.one_of([2.0, 0.5, 1.0, 1.5, 3.0]) for _ in x.shape[2:])]
        g.add("Resize", x, None, g.constant(np.array(scales, "float32")), **attributes)
    else:
        sizes = [*x.shape[:2], *(g.draw(1, 2 * extent) for extent in x.shape[2:])]
        g.add("Resize", x, None, None, g.vector(sizes), **attributes)


def resize_of_bytes(g: Growth) -> None:
    x = g.of_dtype(("uint8", "int8", "int32"), 4)
    scales = [1.0, 1.0, g.one_of([2.0, 0.5]), g.one_of([2.0, 3.0])]
    g.add("Resize", x, None, g.constant(np.array(scales, "float32")), mode="nearest", nearest_mode="floor",
          coordinate_transformation_mode="asymmetric")  # fmt: skip


def sampled(g: Growth) -> None:
    """GridSample."""
    x = image(g, 2)
    if g.opset < 16:
        return
    shape = [x.shape[0], g.draw(1, 6), g.draw(1, 6), 2]
    grid = g.rng.uniform(-0.95, 0.95, shape).astype(x.exact.dtype)
    where = g.constant(grid) if g.folding or len(g.inputs) >= 5 or g.chance(0.4) else g.input(grid)
    g.add("GridSample", x, where, align_corners=g.draw(0, 1), padding_mode=g.one_of(["zeros", "border", "reflection"]))


STEPS = (
    max_pool, max_pool, max_pool_of_bytes, average_pool, average_pool, lp_pool, global_pool, global_pool, resize,
    resize, resize_of_bytes, sampled,
)  # fmt: skip
