"""Operators on windows, signals, segments and sampled positions against NumPy's, written out."""

import numpy as np
import pytest
import tvm
from tvm import te

from tvm_neuron import relay
from tvm_neuron.errors import ModelError

RNG = np.random.default_rng(11)


def run(expr: object, *inputs: np.ndarray) -> list[np.ndarray] | np.ndarray:
    func = relay.Function(relay.analysis.free_vars(expr), expr)
    found = relay.create_executor("vm", target="llvm").evaluate(func)(*inputs)
    return [each.numpy() for each in found] if isinstance(found, list) else found.numpy()


def var(name: str, like: np.ndarray) -> relay.Var:
    return relay.var(name, shape=like.shape, dtype=str(like.dtype))


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("float32")


@pytest.mark.parametrize(("width", "normalized", "onesided"), [(8, False, True), (6, True, False)])
def test_stft_is_numpys_transform_of_each_frame(width: int, normalized: bool, onesided: bool) -> None:
    data, window = normal(2, 30), normal(width)
    found = run(relay.op.stft(var("x", data), 8, 3, width, var("w", window), normalized, onesided), data, window)
    before = (8 - width) // 2
    padded = np.pad(window, (before, 8 - width - before))
    frames = np.stack([data[:, at : at + 8] * padded for at in range(0, 30 - 8 + 1, 3)], 1)
    wanted = (np.fft.rfft if onesided else np.fft.fft)(frames, norm="ortho" if normalized else None).transpose(0, 2, 1)
    np.testing.assert_allclose(found[..., 0] + 1j * found[..., 1], wanted, atol=2e-5)


def test_sliding_windows_are_numpys() -> None:
    data = normal(2, 3, 10, 9)
    found = run(relay.sliding_window(var("x", data), 1, [3, 4, 5], [1, 2, 3]), data)
    wanted = np.lib.stride_tricks.sliding_window_view(data, (3, 4, 5), axis=(1, 2, 3))[:, :, ::2, ::3]
    np.testing.assert_array_equal(found, wanted)


def test_dilation2d() -> None:
    data, element = normal(1, 2, 7, 8), normal(2, 3, 2)
    expr = relay.image.dilation2d(var("x", data), var("w", element), strides=[2, 1], padding=[1, 0], dilations=[1, 2])
    padded = np.pad(data, [(0, 0), (0, 0), (1, 1), (0, 0)], constant_values=-np.inf)
    places = [(row, column) for row in range(3) for column in range(2)]
    parts = [
        padded[:, :, row : row + 7 : 2, 2 * column : 2 * column + 6] + element[:, row, column, None, None]
        for row, column in places
    ]
    np.testing.assert_allclose(run(expr, data, element), np.max(parts, 0), rtol=1e-6)


def test_fixed_point_multiply_rounds_halves_upward() -> None:
    data = np.int32([23, -24, 8, -8, 2**30, -(2**30)])
    found = run(relay.fixed_point_multiply(var("x", data), 1073741824, -3), data)
    np.testing.assert_array_equal(found, np.floor(data / 16 + 0.5).astype("int32"))


def test_sparse_reshape_to_the_same_shape_changes_nothing() -> None:
    places, shape = np.int32([[0, 100], [200, 7]]), np.int32([500, 20])
    expr = relay.op.sparse_reshape(var("p", places), var("b", shape), var("a", shape)).astuple()
    np.testing.assert_array_equal(run(expr, places, shape, np.int32([500, -1]))[0], places)


def test_sparse_reshape_and_segment_sum() -> None:
    places = np.int32([[0, 0], [0, 3], [1, 2], [2, 5]])
    before, after = np.int32([3, 6]), np.int32([2, -1, 3])
    expr = relay.op.sparse_reshape(var("p", places), var("b", before), var("a", after)).astuple()
    found, shape = run(expr, places, before, after)
    np.testing.assert_array_equal(found, np.stack(np.unravel_index(places @ [6, 1], (2, 3, 3)), 1))
    np.testing.assert_array_equal(shape, [2, 3, 3])
    data, ids = normal(5, 2), np.int32([2, 0, 2, 1, 2])
    wanted = np.zeros((4, 2), "float32")
    np.add.at(wanted, ids, data)
    found = run(relay.op.segment_sum(var("x", data), var("i", ids), 4), data, ids)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    found = run(relay.op.segment_sum(var("x", data), var("i", ids)), data, ids)
    np.testing.assert_allclose(found, wanted[:3], rtol=1e-6)


@pytest.mark.parametrize("method", ["bilinear", "nearest_neighbor"])
def test_crops_are_interpolated_in_their_image(method: str) -> None:
    data = normal(2, 6, 7, 3)
    boxes, images = np.float32([[0.1, 0.2, 0.9, 0.7], [-0.3, 0.5, 0.4, 1.2]]), np.int32([1, 0])
    expr = relay.image.crop_and_resize(var("x", data), var("b", boxes), var("i", images), (4, 5), "NHWC", method, 7.0)
    found = run(expr, data, boxes, images)
    wanted = np.full((2, 4, 5, 3), 7.0)
    for box in range(2):
        for row in range(4):
            for column in range(5):
                y = (boxes[box, 0] + (boxes[box, 2] - boxes[box, 0]) * row / 3) * 5
                x = (boxes[box, 1] + (boxes[box, 3] - boxes[box, 1]) * column / 4) * 6
                if 0 <= y <= 5 and 0 <= x <= 6:
                    wanted[box, row, column] = sample(data[images[box]].transpose(2, 0, 1), y, x, method)
    np.testing.assert_allclose(found, wanted, atol=2e-5)


def sample(image: np.ndarray, y: float, x: float, method: str = "bilinear") -> np.ndarray:
    """A point of an image [C, H, W]; what is outside is zero."""
    if method == "nearest_neighbor":
        return image[:, int(np.floor(y + 0.5)), int(np.floor(x + 0.5))]
    total = np.zeros(len(image))
    if not (0 <= y < image.shape[1] and 0 <= x < image.shape[2]):
        return total
    for row in (int(np.floor(y)), int(np.floor(y)) + 1):
        for column in (int(np.floor(x)), int(np.floor(x)) + 1):
            if 0 <= row < image.shape[1] and 0 <= column < image.shape[2]:
                total += image[:, row, column] * (1 - abs(y - row)) * (1 - abs(x - column))
    return total


@pytest.mark.slow
@pytest.mark.parametrize(("groups", "deformable"), [(1, 1), (2, 1), (1, 2)])
def test_deformable_convolution_is_a_sum_over_moved_taps(groups: int, deformable: int) -> None:
    data, weight, offset = normal(2, 4, 5, 6), normal(4, 4 // groups, 3, 3), normal(2, 18 * deformable, 5, 6)
    x = var("x", data)
    moves, kernel = relay.var("o"), relay.var("w")
    expr = relay.nn.deformable_conv2d(
        x, moves, kernel, padding=1, groups=groups, deformable_groups=deformable, channels=4, kernel_size=3
    )
    found = run(expr, data, offset, weight)
    wanted = np.zeros((2, 4, 5, 6))
    for image, row, column, tap in np.ndindex(2, 5, 6, 9):
        taken = []
        for part in range(deformable):
            dy, dx = offset[image, 18 * part + 2 * tap : 18 * part + 2 * tap + 2, row, column]
            channels = data[image].reshape(deformable, -1, 5, 6)[part]
            taken.append(sample(channels, row - 1 + tap // 3 + dy, column - 1 + tap % 3 + dx))
        inputs = np.concatenate(taken).reshape(groups, -1)
        filters = weight[:, :, tap // 3, tap % 3].reshape(groups, 4 // groups, -1)
        wanted[image, :, row, column] += np.einsum("goi,gi->go", filters, inputs).ravel()
    np.testing.assert_allclose(found, wanted, atol=1e-4)


@pytest.mark.parametrize("mode", ["half_pixel", "align_corners", "asymmetric"])
def test_resizing_one_dimension_takes_the_nearest_as_relay_did(mode: str) -> None:
    data = normal(1, 2, 5)
    found = run(relay.image.resize1d(var("x", data), (12,), None, "NCW", "nearest_neighbor", mode), data)
    places = np.arange(12)
    at = {
        "half_pixel": np.floor((places + 0.5) * 5 / 12 - 0.5),
        "asymmetric": np.floor(places * 5 / 12),
        "align_corners": np.floor(places * 4 / 11 + 0.5),
    }[mode]
    np.testing.assert_array_equal(found, data[:, :, np.clip(at, 0, 4).astype(int)])


def test_adaptive_means_of_whole_numbers_are_rounded_once() -> None:
    data = RNG.integers(0, 255, (1, 2, 7, 8)).astype("int32")
    found = run(relay.nn.adaptive_avg_pool2d(var("x", data), (3, 4)), data)
    wanted = [[data[:, :, r * 7 // 3 : -(-(r + 1) * 7 // 3), 2 * c : 2 * c + 2].sum((2, 3)) //
               (2 * (-(-(r + 1) * 7 // 3) - r * 7 // 3)) for c in range(4)] for r in range(3)]  # fmt: skip
    np.testing.assert_array_equal(found, np.array(wanted).transpose(2, 3, 0, 1))
    assert found.dtype == np.int32


def test_means_of_whole_numbers_are_quotients_toward_zero() -> None:
    data = RNG.integers(-50, 50, (3, 4, 5)).astype("int32")
    for expr in (relay.mean(var("x", data), axis=[0, 2]), relay.nn.global_avg_pool1d(var("x", data))):
        found = run(expr, data)
        axes = (0, 2) if found.ndim == 1 else (2,)
        total, count = data.sum(axes, keepdims=found.ndim > 1), data.size // found.size
        np.testing.assert_array_equal(found, np.trunc(total / count).astype("int32"))


def test_variances_over_dimensions_known_when_the_model_runs() -> None:
    data, rows = normal(3, 4), te.var("n")
    x = relay.var("x", relay.TensorType((rows, 4), "float32"))
    found = run(relay.variance(x, axis=0, unbiased=True), data)
    np.testing.assert_allclose(found, data.var(0, ddof=1), rtol=1e-5)


def test_yolo_reorg_keeps_all_elements() -> None:
    data = np.arange(2 * 8 * 4 * 4, dtype="float32").reshape(2, 8, 4, 4)
    found = run(relay.vision.yolo_reorg(var("x", data), 2), data)
    wanted = np.empty_like(data)
    for image, k, j, i in np.ndindex(2, 8, 4, 4):
        across, down = i * 2 + k // 2 % 2, j * 2 + k // 2 // 2
        wanted[image, k, j, i] = data.ravel()[across + 8 * (down + 8 * (k % 2 + 2 * image))]
    np.testing.assert_array_equal(found, wanted.reshape(2, 32, 2, 2))


def test_sizes_of_windows_are_one_for_each_dimension() -> None:
    x, w = relay.var("x", shape=(1, 3, 8, 8)), relay.var("w", shape=(4, 3, 3, 3))
    pooled = relay.nn.max_pool2d(x, pool_size=2, strides=2, padding=1)
    assert (pooled.attrs.pool_size, pooled.attrs.strides) == ((2, 2), (2, 2))
    assert "pool_size=[2, 2], strides=[2, 2], padding=[1, 1, 1, 1]" in pooled.astext()
    assert relay.nn.conv2d(x, w, padding=(1, 2), kernel_size=3).attrs.padding == (1, 2, 1, 2)
    assert relay.nn.conv2d(x, w, padding=(1, 2, 3, 4), kernel_size=3).attrs.padding == (1, 2, 3, 4)
    assert relay.nn.conv1d(relay.var("y", shape=(1, 3, 8)), relay.var("v"), padding=1).attrs.padding == (1, 1)


def test_sizes_that_are_open_where_numbers_are_needed() -> None:
    size = te.size_var("n")
    mod = tvm.IRModule.from_expr(relay.nn.depth_to_space(relay.var("x", shape=(1, size, 8, 8)), 2))
    with pytest.raises(ModelError, match=r"nn\.depth_to_space_0 .*: it needs sizes that are open here: give numbers"):
        relay.transform.InferType()(mod)


def test_what_does_not_fit_is_said_in_a_sentence() -> None:
    one, other = relay.var("x", shape=(2, 3)), relay.var("y", shape=(4,))
    with pytest.raises(ModelError, match=r"^add_0 \(add\): the first input shape at dim 1 is 3 and the second input"):
        relay.transform.InferType()(tvm.IRModule.from_expr(one + other))
