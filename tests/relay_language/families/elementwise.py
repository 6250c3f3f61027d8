"""Functions of each element, and of two: name, call, reference, inputs."""

from math import erf

import numpy as np

from tests.relay_language.families.values import DIVISOR, POSITIVE, WHOLE, Case, X, Y, binary, unary
from tvm_neuron import relay

ELEMENTWISE: list[Case] = [
    *unary("tan cos cosh sin sinh exp sqrt floor ceil trunc abs sign tanh negative log log2 log10", np, POSITIVE),
    *unary("isnan isfinite isinf", np, X),
    ("acos", relay.acos, np.arccos, [POSITIVE]),
    ("asin", relay.asin, np.arcsin, [POSITIVE]),
    ("atan", relay.atan, np.arctan, [X]),
    ("atanh", relay.atanh, np.arctanh, [POSITIVE]),
    ("acosh", lambda x: relay.acosh(x + relay.const(1.5)), lambda x: np.arccosh(x + 1.5), [POSITIVE]),
    ("asinh", relay.asinh, np.arcsinh, [X]),
    ("erf", relay.erf, np.vectorize(erf), [X]),
    ("rsqrt", relay.rsqrt, lambda x: x**-0.5, [POSITIVE]),
    ("sigmoid", relay.sigmoid, lambda x: 1 / (1 + np.exp(-x)), [X]),
    ("round", relay.round, np.rint, [X]),
    *binary("add subtract multiply divide maximum minimum power", np, POSITIVE, POSITIVE[:, :1]),
    *binary("equal not_equal less less_equal greater greater_equal", np, WHOLE, DIVISOR),
    *binary("bitwise_and bitwise_or bitwise_xor floor_divide add maximum", np, WHOLE, DIVISOR),
    ("floor_mod", relay.floor_mod, np.mod, [WHOLE, DIVISOR]),
    ("trunc_divide", relay.trunc_divide, lambda x, y: np.trunc(x / y), [WHOLE, DIVISOR]),
    ("trunc_mod", relay.trunc_mod, np.fmod, [WHOLE, DIVISOR]),
    ("mod", relay.mod, np.fmod, [X, POSITIVE]),
    ("bitwise_not", relay.bitwise_not, np.invert, [WHOLE]),
    ("left_shift", lambda x: relay.left_shift(x, relay.const(2)), lambda x: x << 2, [WHOLE]),
    ("right_shift", lambda x: relay.right_shift(x, relay.const(2)), lambda x: x >> 2, [WHOLE]),
    ("logical_and", relay.logical_and, np.logical_and, [X > 0, Y > 0]),
    ("logical_or", relay.logical_or, np.logical_or, [X > 0, Y > 0]),
    ("logical_xor", relay.logical_xor, np.logical_xor, [X > 0, Y > 0]),
    ("logical_not", relay.logical_not, np.logical_not, [X > 0]),
    ("clip", lambda x: relay.clip(x, -0.5, 0.7), lambda x: np.clip(x, np.float32(-0.5), np.float32(0.7)), [X]),
    ("cast", lambda x: relay.cast(x * 4.0, "int32"), lambda x: (x * 4).astype("int32"), [X]),
    ("where", relay.where, np.where, [X > 0, X, Y]),
    ("operators", lambda x, y: (2.0 - x) * y / 3.0 + (-x) - 1.0, lambda x, y: (2 - x) * y / 3 - x - 1, [X, Y]),
]
