"""Elements by position: name, call, reference, inputs."""

import numpy as np

from tests.relay_language.families.values import POSITIVE, RNG, Case, X, Y
from tvm_neuron import relay

INDEXING: list[Case] = [
    ("take", lambda x, i: relay.take(x, i, axis=1), lambda x, i: x.take(i, 1), [X, np.int32([[3, 0], [1, 1]])]),
    ("take flat", relay.take, lambda x, i: x.ravel()[i], [X, np.int32([3, 71, 20])]),
    ("take clip", lambda x, i: relay.take(x, i, axis=1), lambda x, i: x[:, [0, 3]], [X, np.int32([-4, 9])]),
    (
        "take wrap",
        lambda x, i: relay.take(x, i, axis=1, mode="wrap"),
        lambda x, i: x[:, [2, 1]],
        [X, np.int32([-2, 9])],
    ),
    (
        "take batch",
        lambda x, i: relay.take(x, i, axis=2, batch_dims=1),
        lambda x, i: np.stack([x[n][:, i[n]] for n in range(3)]),
        [X, np.int32([[5, 0], [1, 1], [2, 4]])],
    ),
    (
        "gather",
        lambda x, i: relay.gather(x, 1, i),
        lambda x, i: np.take_along_axis(x, i, 1),
        [X, RNG.integers(0, 4, (3, 2, 6))],
    ),
    ("gather_nd", relay.gather_nd, lambda x, i: x[tuple(i)], [X, np.int64([[0, 2], [3, 1]])]),
    (
        "scatter_elements",
        lambda x, i, u: relay.scatter_elements(x, i, u, axis=1),
        lambda x, i, u: (z := x.copy(), np.put_along_axis(z, i, u, 1))[0],
        [X, RNG.permuted(np.tile(np.arange(4), (3, 6, 1)), axis=2).transpose(0, 2, 1)[:, :2].copy(), Y[:, :2].copy()],
    ),
    (
        "scatter_nd",
        lambda x, i, u: relay.scatter_nd(x, i, u, "add"),
        lambda x, i, u: (z := x.copy(), np.add.at(z, tuple(i), u))[0],
        [X, np.int64([[0, 2, 0], [3, 1, 3]]), Y[:, 0].copy()],
    ),
    (
        "strided_slice",
        lambda x: relay.strided_slice(x, [0, 3, 1], [2, 0, 5], [1, -1, 2]),
        lambda x: x[:2, 3:0:-1, 1:5:2],
        [X],
    ),
    (
        "size",
        lambda x: relay.strided_slice(x, [1, 2], [-1, 3], axes=(0, 2), slice_mode="size"),
        lambda x: x[1:, :, 2:5],
        [X],
    ),
    ("slice_like", lambda x, y: relay.slice_like(x, y, axes=[1]), lambda x, y: x[:, :2], [X, Y[:, :2].copy()]),
    (
        "strided_set",
        lambda x, v: relay.strided_set(x, v, [0, 0, 0], [3, 4, 6], [1, 2, 3]),
        lambda x, v: (z := x.copy(), z.__setitem__(np.s_[:, ::2, ::3], v))[0],
        [X, Y[:, :2, :2].copy()],
    ),
    (
        "sequence_mask",
        lambda x, n: relay.sequence_mask(x, n, mask_value=7.0),
        lambda x, n: np.where(np.arange(3)[:, None, None] < n[None, :, None], x, 7),
        [X, np.int32([1, 3, 2, 0])],
    ),
    (
        "one_hot",
        lambda i: relay.one_hot(i, relay.const(5.0), relay.const(1.0), 4, -1, "float32"),
        lambda i: 1 + 4 * np.eye(4)[i],
        [np.int32([[3, 0], [2, 2]])],
    ),
    ("trilu", lambda x: relay.trilu(x, 1, upper=True), lambda x: np.triu(x, 1), [X]),
    (
        "adv_index",
        lambda x, i, j: relay.adv_index([x, i, j]),
        lambda x, i, j: x[i, j],
        [X, np.int64([[0], [2]]), np.int64([1, 3, 0])],
    ),
    (
        "unravel_index",
        lambda i: relay.unravel_index(i, relay.const([3, 4, 6])),
        lambda i: np.stack(np.unravel_index(i, (3, 4, 6))),
        [np.int32([0, 71, 20])],
    ),
    ("arange", lambda x: x + relay.arange(relay.const(6.0)), lambda x: x + np.arange(6), [X]),
    ("full", lambda x: relay.full(relay.const(3.0), (4, 6)) + x, lambda x: x + 3, [X]),
    (
        "matrix_set_diag",
        relay.matrix_set_diag,
        lambda x, d: np.where(np.eye(4, 6) > 0, d[..., None], x),
        [X, Y[:, :, 0].copy()],
    ),
    ("sort", lambda x: relay.sort(x, axis=1, is_ascend=False), lambda x: -np.sort(-x, 1), [X]),
    ("argsort", lambda x: relay.argsort(x, axis=1), lambda x: np.argsort(x, 1), [X]),
    ("topk", lambda x: relay.topk(x, 2, axis=2, ret_type="values"), lambda x: -np.sort(-x, 2)[..., :2], [X]),
    ("cumsum", lambda x: relay.cumsum(x, axis=1), lambda x: np.cumsum(x, 1), [X]),
    ("cumprod", lambda x: relay.cumprod(x), lambda x: np.cumprod(x), [POSITIVE[0]]),
    ("searchsorted", relay.searchsorted, np.searchsorted, [np.float32([1, 3, 5]), np.float32([0, 3, 4, 9])]),
]
