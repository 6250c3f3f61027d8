"""Reductions and sorting: name, call, reference, inputs."""

import numpy as np

from tests.relay_language.families.values import POSITIVE, WHOLE, Case, X
from tvm_neuron import relay

REDUCTIONS: list[Case] = [
    *[
        (
            f"{n} {axis}",
            lambda x, n=n, a=axis: getattr(relay, n)(x, axis=a),
            lambda x, n=n, a=axis: getattr(np, n)(x, a),
            [d],
        )
        for n, axis, d in [
            ("sum", 1, X),
            ("sum", None, X),
            ("prod", (0, 2), POSITIVE),
            ("max", -1, X),
            ("min", (1, 2), X),
            ("mean", None, X),
            ("all", 1, X > -1),
            ("any", (0, 1), X > 1),
            ("argmax", 1, X),
            ("argmin", 2, X),
        ]
    ],
    (
        "exclude",
        lambda x: relay.sum(x, axis=1, exclude=True, keepdims=True),
        lambda x: x.sum((0, 2), keepdims=True),
        [X],
    ),
    ("argmax of all", relay.argmax, np.argmax, [X]),
    (
        "last index",
        lambda x: relay.argmax(x, axis=1, select_last_index=True),
        lambda x: 3 - x[:, ::-1].argmax(1),
        [WHOLE],
    ),
    ("variance", lambda x: relay.variance(x, axis=(1, 2)), lambda x: x.var((1, 2)), [X]),
    ("unbiased", lambda x: relay.variance(x, axis=1, unbiased=True), lambda x: x.var(1, ddof=1), [X]),
    ("std", lambda x: relay.std(x, axis=2, keepdims=True), lambda x: x.std(2, keepdims=True), [X]),
    ("mean_variance", lambda x: relay.mean_variance(x, axis=1), lambda x: [x.mean(1), x.var(1)], [X]),
    ("mean_std", lambda x: relay.mean_std(x, axis=1), lambda x: [x.mean(1), x.std(1)], [X]),
    ("logsumexp", lambda x: relay.logsumexp(x, axis=1), lambda x: np.log(np.exp(x).sum(1)), [X]),
]
