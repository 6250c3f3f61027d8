"""Symbols of MXNet, with inputs and weights: one or more for every operator that is read."""

import mxnet as mx
import numpy as np

_RNG = np.random.RandomState(0)
S = mx.sym
X, Y, W, B, N = (S.var(name) for name in "xywbn")


def floats(*shape):
    return _RNG.standard_normal(shape).astype("float32")


def positive(*shape):
    return _RNG.uniform(0.2, 2, shape).astype("float32")


def whole(below, *shape):
    return _RNG.randint(0, below, shape).astype("float32")


def cases():
    """name -> symbol, inputs, weights."""
    return _elementwise() | _activations() | _shapes() | _windows() | _norms() | _reductions() | _products() | _rest()


def _elementwise():
    one = "relu sigmoid tanh softsign exp abs ceil floor negative erf sign cos sin arctan square fix trunc sinh cosh"
    one += " arcsinh"
    found = {name: (getattr(S, name)(X), {"x": floats(3, 5) * 2}, {}) for name in one.split()}
    domain = "log sqrt rsqrt reciprocal log2 log10 arccosh"
    found |= {name: (getattr(S, name)(X), {"x": positive(3, 5) + (name == "arccosh")}, {}) for name in domain.split()}
    inner = "arccos arcsin arctanh tan"
    found |= {name: (getattr(S, name)(X), {"x": positive(3, 5) / 3}, {}) for name in inner.split()}
    two = "add sub mul div maximum minimum power mod equal not_equal greater greater_equal lesser lesser_equal hypot"
    for name in two.split():
        x, y = (positive(3, 5), positive(5)) if name == "power" else (whole(4, 3, 5) - 1, whole(3, 1, 5) + 1)
        found[f"broadcast_{name}"] = (getattr(S, f"broadcast_{name}")(X, Y), {"x": x, "y": y}, {})
    for name in ("logical_and", "logical_or", "logical_xor"):
        found[f"broadcast_{name}"] = (getattr(S, f"broadcast_{name}")(X, Y), {"x": whole(2, 9), "y": whole(2, 9)}, {})
    for name in ("elemwise_add", "elemwise_sub", "elemwise_mul", "elemwise_div", "_maximum", "_minimum"):
        operator = getattr(S, name, None) or getattr(S._internal, name)
        found[name] = (operator(X, Y), {"x": floats(2, 3), "y": positive(2, 3)}, {})
    scalars = (
        "plus minus rminus mul div rdiv power rpower maximum minimum mod rmod equal not_equal greater "
        "greater_equal lesser lesser_equal hypot logical_and logical_or logical_xor"
    )
    for name in scalars.split():
        x = positive(3, 4) if "power" in name else whole(4, 3, 4) + 1
        found[f"{name}_scalar"] = (getattr(S._internal, f"_{name}_scalar")(X, scalar=2.0), {"x": x}, {})
    return found | {
        "python_operators": (2 - (X + 1) / 3 * (X > 0) + X**2, {"x": floats(4)}, {}),
        "logical_not": (S.logical_not(X), {"x": whole(2, 6)}, {}),
        "round": (S.round(X), {"x": np.array([-2.5, -1.5, -0.4, 0.5, 1.5, 2.6], "float32")}, {}),
        "add_n": (S.add_n(X, Y, S.var("z")), {"x": floats(3), "y": floats(3), "z": floats(3)}, {}),
        "clip": (S.clip(X, a_min=-0.5, a_max=1), {"x": floats(9)}, {}),
        "hard_sigmoid": (S.hard_sigmoid(X, alpha=0.3), {"x": floats(9) * 2}, {}),
        "where": (S.where(X, Y, -Y), {"x": whole(2, 3, 4), "y": floats(3, 4)}, {}),
        "where_rows": (S.where(X, Y, -Y), {"x": whole(2, 3), "y": floats(3, 4)}, {}),
        "cast": (S.Cast(X, dtype="int32"), {"x": floats(9) * 4}, {}),
        "identity": (S.BlockGrad(S.identity(X)) + S.MakeLoss(X), {"x": floats(3)}, {}),
        "dropout": (S.Dropout(X, p=0.5), {"x": floats(3, 4)}, {}),
    }


def _activations():
    found = {
        f"activation_{kind}": (S.Activation(X, act_type=kind), {"x": floats(3, 5)}, {})
        for kind in ("relu", "sigmoid", "tanh", "softrelu", "softsign")
    }
    found |= {
        f"leaky_{kind}": (S.LeakyReLU(X, act_type=kind, slope=0.1), {"x": floats(2, 3, 4)}, {})
        for kind in ("leaky", "elu", "selu", "gelu")
    }
    lengths = np.array([2, 5], "float32")
    return found | {
        "leaky_rrelu": (S.LeakyReLU(X, act_type="rrelu")[0], {"x": floats(2, 3, 4)}, {}),
        "leaky_prelu": (S.LeakyReLU(X, S.var("g"), act_type="prelu"), {"x": floats(2, 3, 4, 4)}, {"g": positive(3)}),
        "softmax": (S.softmax(X, axis=1, temperature=2.0), {"x": floats(2, 3, 4)}, {}),
        "softmax_length": (
            S.softmax(X, length=S.Cast(N, dtype="int32"), use_length=True, axis=1),
            {"x": floats(2, 5), "n": lengths},
            {},
        ),
        "log_softmax": (S.log_softmax(X), {"x": floats(3, 4)}, {}),
        "softmax_activation": (S.SoftmaxActivation(X), {"x": floats(2, 3, 4)}, {}),
        "softmax_channels": (S.SoftmaxActivation(X, mode="channel"), {"x": floats(2, 3, 4)}, {}),
        "softmax_output": (
            S.SoftmaxOutput(X, S.var("label"), grad_scale=2.0),
            {"x": floats(2, 6), "label": whole(6, 2)},
            {},
        ),
        "softmax_output_whole": (
            S.SoftmaxOutput(X, S.var("label")),
            {"x": floats(2, 3, 4), "label": whole(4, 2, 3)},
            {},
        ),
        "softmax_output_rows": (
            S.SoftmaxOutput(X, S.var("label"), preserve_shape=True),
            {"x": floats(2, 3, 4), "label": whole(4, 2, 3)},
            {},
        ),
        "softmax_output_multi": (
            S.SoftmaxOutput(X, S.var("label"), multi_output=True),
            {"x": floats(2, 3, 4), "label": whole(3, 2, 4)},
            {},
        ),
        "logistic": (S.LogisticRegressionOutput(X, S.var("label")), {"x": floats(2, 3), "label": floats(2, 3)}, {}),
        "absolute": (S.MAERegressionOutput(X, S.var("label")), {"x": floats(2, 3), "label": floats(2, 3)}, {}),
        "linear": (S.LinearRegressionOutput(X, S.var("label")), {"x": floats(2, 3), "label": floats(2, 3)}, {}),
    }


def _shapes():
    found = {}
    for number, (told, shape, back) in enumerate(
        [
            ((4, 0, 2), (2, 3, 4), False),
            ((-1, 0), (2, 3, 4), False),
            ((-2, 1, 1), (2, 3, 4), False),
            ((-3, 4), (2, 3, 4), False),
            ((-4, 1, 2, -2), (2, 3, 4), False),
            ((2, -4, -1, 3, -2), (2, 3, 4), False),
            ((0, -3, 0), (2, 3, 4, 5), False),
            ((-1, 0), (10, 5, 4), True),
            ((0, -1), (10, 5, 4), False),
            ((0, -4, 2, -1, -3), (2, 6, 2, 3), False),
        ]
    ):
        found[f"reshape_{number}"] = (S.reshape(X, shape=told, reverse=back), {"x": floats(*shape)}, {})
    data, four = {"x": floats(2, 3, 4)}, {"x": floats(2, 3, 4, 5)}
    parts = S.SliceChannel(X, num_outputs=2, axis=2)
    return found | {
        "reshape_like": (S.reshape_like(X, Y), {"x": floats(6), "y": floats(2, 3)}, {}),
        "reshape_like_part": (
            S.reshape_like(X, Y, lhs_begin=0, lhs_end=2, rhs_begin=1, rhs_end=3),
            {"x": floats(6, 2, 5), "y": floats(9, 3, 4)},
            {},
        ),
        "flatten": (S.Flatten(X), data, {}),
        "expand_dims": (S.expand_dims(X, axis=-2), data, {}),
        "squeeze": (S.Group([S.squeeze(X), S.squeeze(X, axis=(0,))]), {"x": floats(1, 3, 1)}, {}),
        "transpose": (S.Group([S.transpose(X), S.transpose(X, axes=(0, 2, 1))]), data, {}),
        "swap": (S.SwapAxis(X, dim1=0, dim2=2), data, {}),
        "concat": (S.Concat(X, Y, dim=-1), {"x": floats(2, 3), "y": floats(2, 1)}, {}),
        "stack": (S.stack(X, Y, axis=1), {"x": floats(2, 3), "y": floats(2, 3)}, {}),
        "split": (S.Group([parts[1], parts[0] * 2]), data, {}),
        "split_squeeze": (S.split(X, num_outputs=3, squeeze_axis=True), data, {}),
        "split_into_one": (S.split(X, num_outputs=1), data, {}),
        "slice": (S.slice(X, begin=(0, 2, None), end=(1, None, 1), step=(1, -1, -2)), data, {}),
        "slice_none": (S.slice(X, begin=(None, 1), end=(2, None)), data, {}),
        "slice_axis": (S.slice_axis(X, axis=-1, begin=-3, end=None), data, {}),
        "slice_like": (S.slice_like(X, Y, axes=(0, -1)), {"x": floats(3, 3, 4), "y": floats(2, 1, 2)}, {}),
        "reverse": (S.reverse(X, axis=(0, 2)), data, {}),
        "repeat": (S.Group([S.repeat(X, repeats=2, axis=1), S.repeat(X, repeats=2)]), data, {}),
        "tile": (S.Group([S.tile(X, reps=(2,)), S.tile(X, reps=(2, 1, 1, 3))]), data, {}),
        "pad": (S.Pad(X, mode="constant", pad_width=(0, 0, 0, 0, 1, 2, 3, 0), constant_value=1.5), four, {}),
        "pad_edge": (S.pad(X, mode="edge", pad_width=(0, 0, 0, 0, 1, 2, 3, 0)), four, {}),
        "pad_reflect": (S.pad(X, mode="reflect", pad_width=(0, 0, 0, 0, 1, 2, 3, 0)), four, {}),
        "broadcast_axis": (S.broadcast_axis(X, axis=(0, 2), size=(2, 4)), {"x": floats(1, 3, 1)}, {}),
        "broadcast_to": (S.broadcast_to(X, shape=(2, 0, 4)), {"x": floats(1, 3, 1)}, {}),
        "broadcast_like": (S.broadcast_like(X, Y), {"x": floats(1, 3), "y": floats(2, 3)}, {}),
        "broadcast_like_axes": (
            S.broadcast_like(X, Y, lhs_axes=(0,), rhs_axes=(-1,)),
            {"x": floats(1, 3), "y": floats(2, 5)},
            {},
        ),
        "depth_to_space": (S.depth_to_space(X, block_size=2), {"x": floats(1, 8, 2, 3)}, {}),
        "space_to_depth": (S.space_to_depth(X, block_size=2), {"x": floats(1, 2, 4, 6)}, {}),
        "zeros": (S.Group([X + S.zeros((2, 3)), X * S.ones((2, 3)), X + S.full((2, 3), 2.5)]), {"x": floats(2, 3)}, {}),
        "like": (S.zeros_like(X) + S.ones_like(X), data, {}),
        "arange": (X + S.arange(1, 7, 2, repeat=2), {"x": floats(6)}, {}),
        "arange_to": (X + S.arange(6), {"x": floats(6)}, {}),
        "arange_like": (X * S.contrib.arange_like(X, start=2, step=0.5), {"x": floats(2, 3)}, {}),
        "arange_like_axis": (S.broadcast_mul(X, S.contrib.arange_like(X, axis=1)), {"x": floats(2, 3)}, {}),
    }


def _windows():
    image = {"x": floats(2, 4, 9, 7)}
    weight, bias = {"w": floats(6, 4, 3, 3) / 6}, {"b": floats(6)}
    conv = {"kernel": (3, 3), "num_filter": 6}
    last = {"x": floats(1, 5, 5, 4)}
    found = {
        "convolution": (S.Convolution(X, W, B, stride=(2, 1), pad=(1, 0), dilate=(1, 2), **conv), image, weight | bias),
        "convolution_group": (S.Convolution(X, W, no_bias=True, num_group=2, **conv), image, {"w": floats(6, 2, 3, 3)}),
        "convolution_1d": (
            S.Convolution(X, W, B, kernel=(3,), num_filter=6, pad=(1,)),
            {"x": floats(2, 4, 9)},
            {"w": floats(6, 4, 3)} | bias,
        ),
        "convolution_3d": (
            S.Convolution(X, W, B, kernel=(2, 2, 2), num_filter=6),
            {"x": floats(1, 4, 3, 4, 3)},
            {"w": floats(6, 4, 2, 2, 2) / 6} | bias,
        ),
        "convolution_v1": (S.Convolution_v1(X, W, B, **conv), image, weight | bias),
        "deconvolution": (
            S.Deconvolution(X, W, kernel=(3, 3), num_filter=6, stride=(2, 2), pad=(1, 1), adj=(1, 0)),
            image,
            {"w": floats(4, 6, 3, 3) / 6},
        ),
        "deconvolution_target": (
            S.Deconvolution(X, W, B, kernel=(4, 4), num_filter=6, stride=(2, 2), no_bias=False, target_shape=(18, 13)),
            image,
            {"w": floats(4, 6, 4, 4) / 6} | bias,
        ),
        "deconvolution_group": (
            S.Deconvolution(X, W, kernel=(4, 4), num_filter=4, stride=(2, 2), num_group=4),
            image,
            {"w": floats(4, 1, 4, 4)},
        ),
        "upsampling": (S.UpSampling(X, scale=2, sample_type="nearest"), image, {}),
        "upsampling_two": (
            S.UpSampling(X, Y, scale=4, sample_type="nearest", num_args=2),
            {"x": floats(1, 2, 2, 3), "y": floats(1, 3, 4, 6)},
            {},
        ),
        "upsampling_bilinear": (
            S.UpSampling(X, W, scale=2, sample_type="bilinear", num_filter=4, num_args=2),
            image,
            {"w": positive(4, 1, 4, 4)},
        ),
    }
    for kind in ("max", "avg", "sum"):
        for rule in ("valid", "full"):
            pool = S.Pooling(X, kernel=(3, 2), stride=(2, 3), pad=(1, 0), pool_type=kind, pooling_convention=rule)
            found[f"pooling_{kind}_{rule}"] = (pool, image, {})
        found[f"pooling_{kind}_global"] = (S.Pooling(X, kernel=(1, 1), global_pool=True, pool_type=kind), image, {})
    without = {"pool_type": "avg", "count_include_pad": False, "pad": (1, 1)}
    return found | {
        "pooling_without_padding": (S.Pooling(X, kernel=(3, 3), stride=(2, 2), **without), image, {}),
        "pooling_without_padding_full": (
            S.Pooling(X, kernel=(3, 3), stride=(3, 3), pooling_convention="full", **without),
            image,
            {},
        ),
        "pooling_lp": (S.Pooling(X, kernel=(2, 2), stride=(2, 2), pool_type="lp", p_value=2), image, {}),
        "pooling_1d": (S.Pooling(X, kernel=(3,), stride=(2,), pool_type="max"), {"x": floats(2, 4, 9)}, {}),
        "pooling_v1": (S.Pooling_v1(X, kernel=(2, 2), stride=(2, 2), pool_type="max"), {"x": floats(2, 4, 8, 6)}, {}),
        "pooling_last": (S.Pooling(X, kernel=(2, 2), pool_type="max", layout="NHWC"), last, {}),
    }


def _norms():
    gamma, beta, mean, var = (S.var(name) for name in ("gamma", "beta", "mean", "var"))
    drawn = {"gamma": positive(4), "beta": floats(4), "mean": floats(4), "var": positive(4)}
    scales = {name: drawn[name] for name in ("gamma", "beta")}
    whole_norm = {"fix_gamma": False, "eps": 1e-4}
    return {
        "batch_norm": (S.BatchNorm(X, gamma, beta, mean, var, **whole_norm), {"x": floats(2, 4, 3, 3)}, drawn),
        "batch_norm_fixed": (S.BatchNorm(X, gamma, beta, mean, var), {"x": floats(2, 4, 3, 3)}, drawn),
        "batch_norm_last": (
            S.BatchNorm(X, gamma, beta, mean, var, axis=-1, **whole_norm),
            {"x": floats(2, 3, 4)},
            drawn,
        ),
        "batch_norm_rows": (S.BatchNorm(X, gamma, beta, mean, var, **whole_norm), {"x": floats(3, 4)}, drawn),
        "layer_norm": (S.LayerNorm(X, gamma, beta), {"x": floats(2, 3, 4)}, scales),
        "layer_norm_axis": (S.LayerNorm(X, gamma, beta, axis=1), {"x": floats(2, 4, 3)}, scales),
        "instance_norm": (S.InstanceNorm(X, gamma, beta), {"x": floats(2, 4, 3, 3)}, scales),
        "unit_length": (S.L2Normalization(X), {"x": floats(2, 3, 4)}, {}),
        "unit_length_channel": (S.L2Normalization(X, mode="channel"), {"x": floats(2, 3, 4)}, {}),
        "unit_length_spatial": (S.L2Normalization(X, mode="spatial"), {"x": floats(2, 3, 4)}, {}),
        "local_response": (S.LRN(X, nsize=3, alpha=0.1), {"x": floats(2, 6, 3, 3)}, {}),
    }


def _reductions():
    found, data = {}, {"x": positive(2, 3, 4)}
    for name in ("sum", "mean", "max", "min", "prod"):
        operator = getattr(S, name)
        forms = [
            operator(X),
            operator(X, axis=1),
            operator(X, axis=(0, 2), keepdims=True),
            operator(X, axis=1, exclude=True),
        ]
        found[name] = (S.Group(forms), data, {})
    return found | {
        "norm": (S.Group([S.norm(X), S.norm(X, ord=1, axis=1), S.norm(X, axis=-1, keepdims=True)]), data, {}),
        "argmax": (S.Group([S.argmax(X, axis=1), S.argmax(X, axis=-1, keepdims=True), S.argmax(X)]), data, {}),
        "argmin": (S.argmin(X, axis=1), data, {}),
    }


def _products():
    dense = {"w": floats(5, 12) / 3, "b": floats(5)}
    qkv, attention = floats(4, 2, 18), positive(6, 4, 4)
    return {
        "dense": (S.FullyConnected(X, W, B, num_hidden=5), {"x": floats(2, 3, 4)}, dense),
        "dense_rows": (S.FullyConnected(X, W, B, num_hidden=5, flatten=False), {"x": floats(2, 3, 12)}, dense),
        "dense_bare": (S.FullyConnected(X, W, num_hidden=5, no_bias=True), {"x": floats(2, 12)}, {"w": dense["w"]}),
        "dot": (S.dot(X, Y), {"x": floats(2, 3, 4), "y": floats(4, 5)}, {}),
        "dot_turned": (S.dot(X, Y, transpose_a=True, transpose_b=True), {"x": floats(4, 3), "y": floats(5, 4)}, {}),
        "dot_vectors": (S.dot(X, Y), {"x": floats(4), "y": floats(4)}, {}),
        "batch_dot": (S.batch_dot(X, Y), {"x": floats(2, 3, 4), "y": floats(2, 4, 5)}, {}),
        "batch_dot_turned": (
            S.batch_dot(X, Y, transpose_a=True, transpose_b=True),
            {"x": floats(2, 4, 3), "y": floats(2, 5, 4)},
            {},
        ),
        "div_sqrt_dim": (S.contrib.div_sqrt_dim(X), {"x": floats(2, 5)}, {}),
        "self_scores": (S.contrib.interleaved_matmul_selfatt_qk(X, heads=3), {"x": qkv}, {}),
        "self_mixed": (S.contrib.interleaved_matmul_selfatt_valatt(X, Y, heads=3), {"x": qkv, "y": attention}, {}),
        "cross_scores": (
            S.contrib.interleaved_matmul_encdec_qk(X, Y, heads=3),
            {"x": floats(4, 2, 6), "y": floats(5, 2, 12)},
            {},
        ),
        "cross_mixed": (
            S.contrib.interleaved_matmul_encdec_valatt(X, Y, heads=3),
            {"x": floats(5, 2, 12), "y": positive(6, 4, 5)},
            {},
        ),
    }


def _rest():
    steps, lengths = {"x": floats(5, 3, 2)}, {"n": np.array([2, 5, 1], "float32")}
    table = {"w": floats(7, 4)}
    used = {"use_sequence_length": True}
    found = {
        "take": (S.take(X, Y), {"x": floats(5, 3), "y": np.array([[0, 4], [-2, 9]], "float32")}, {}),
        "take_wrap": (S.take(X, Y, axis=1, mode="wrap"), {"x": floats(2, 3), "y": np.array([0, -1, 4], "float32")}, {}),
        "embedding": (S.Embedding(X, W, input_dim=7, output_dim=4), {"x": whole(7, 2, 3)}, table),
        "one_hot": (S.one_hot(X, depth=4, on_value=2, off_value=-1), {"x": np.array([0, 3, 5, -1], "float32")}, {}),
        "pick": (S.Group([S.pick(X, Y), S.pick(X, Y, keepdims=True)]), {"x": floats(3, 4), "y": whole(4, 3)}, {}),
        "gather_nd": (S.gather_nd(X, Y), {"x": floats(3, 4, 2), "y": np.stack([whole(3, 5), whole(4, 5)])}, {}),
        "sequence_mask": (S.SequenceMask(X, N, value=-1, **used), steps | lengths, {}),
        "sequence_mask_axis": (S.SequenceMask(X, N, axis=1, **used), {"x": floats(3, 5, 2)} | lengths, {}),
        "sequence_mask_unused": (S.SequenceMask(X), steps, {}),
        "sequence_last": (S.Group([S.SequenceLast(X, N, **used), S.SequenceLast(X)]), steps | lengths, {}),
        "sequence_reverse": (S.Group([S.SequenceReverse(X, N, **used), S.SequenceReverse(X)]), steps | lengths, {}),
        "prior": (
            S.contrib.MultiBoxPrior(X, sizes=(0.4, 0.2), ratios=(1, 2, 0.5), clip=True),
            {"x": floats(1, 2, 3, 4)},
            {},
        ),
        "prior_steps": (
            S.broadcast_mul(
                S.contrib.MultiBoxPrior(X, sizes=(0.4,), steps=(0.3, 0.2), offsets=(0.1, 0.4)),
                S.reshape(S.max(X), shape=(1, 1, 1)),
            ),
            {"x": floats(1, 2, 3, 4)},
            {},
        ),
    }
    found |= _detections() | _loops()
    for mode, gates in (("lstm", 4), ("gru", 3), ("rnn_tanh", 1), ("rnn_relu", 1)):
        for ways, layers in ((1, 2), (2, 2)):
            size, width = 4, 3
            length = sum(
                ways * gates * size * ((width if not layer else ways * size) + size + 2) for layer in range(layers)
            )
            state = floats(layers * ways, 2, size)
            more = {"c": floats(layers * ways, 2, size)} if mode == "lstm" else {}
            cell = {"state_cell": S.var("c")} if more else {}
            rnn = S.RNN(
                X,
                parameters=W,
                state=S.var("h"),
                state_size=size,
                num_layers=layers,
                mode=mode,
                bidirectional=ways == 2,
                state_outputs=True,
                **cell,
            )
            found[f"{mode}_{ways}"] = (rnn, {"x": floats(5, 2, width), "h": state} | more, {"w": floats(length) / 2})
    rnn = S.RNN(X, parameters=W, state=S.zeros((1, 0, 4)), state_size=4, num_layers=1, mode="gru")
    return found | {"rnn_from_zeros": (rnn, {"x": floats(5, 2, 3)}, {"w": floats(3 * 4 * 9) / 2})}


def _detections():
    rng = np.random.RandomState(5)  # of its own, so that what the others draw stays
    scores = rng.uniform(0, 1, (2, 4, 12)).astype("float32")
    center, half = rng.uniform(0.3, 0.7, (12, 2)), rng.uniform(0.1, 0.3, (12, 2))
    given = {
        "x": scores / scores.sum(1, keepdims=True),
        "y": (rng.standard_normal((2, 48)) / 2).astype("float32"),
        "w": np.concatenate([center - half, center + half], -1)[None].astype("float32"),
    }
    forms = {
        "": {},
        "_top": {"nms_topk": 5, "nms_threshold": 0.2},
        "_limit": {"threshold": 0.4, "clip": False, "variances": (0.2, 0.1, 0.3, 0.1)},
        "_one_class": {"force_suppress": True, "nms_threshold": 0.3},
        "_kept": {"nms_threshold": -1, "threshold": 0.35},
    }
    detect = S.contrib.MultiBoxDetection
    return {f"detection{name}": (detect(X, Y, W, **form), given, {}) for name, form in forms.items()}


def _loops():
    rng = np.random.RandomState(6)

    def step(data, states):
        out = S.FullyConnected(data, num_hidden=4, weight=W, no_bias=True) + states[0]
        return [out * 2, data + 1], [S.tanh(out), states[1] + 1]

    rows, states = S.contrib.foreach(step, X, [Y, S.var("z")])
    given = {"x": rng.standard_normal((3, 2, 4)), "y": rng.standard_normal((2, 4)), "z": np.zeros(1)}
    weight = {"w": rng.standard_normal((4, 4)).astype("float32")}
    counted, (_, end) = S.contrib.while_loop(
        lambda n, x: S.sum(x) * 0 + n < 3,
        lambda n, x: ([S.broadcast_mul(x, n), x + 1], [n + 1, x * 1.5]),
        [Y, X],
        max_iterations=5,
    )
    counted = [S.slice_axis(each, axis=0, begin=0, end=2) for each in counted]  # further rows are whatever there was
    start = {"x": rng.standard_normal((2, 3)), "y": np.ones(1)}
    chosen = S.contrib.cond(S.sum(X) > S.sum(Y), lambda: X * Y + 1, lambda: X - Y)
    two = {"x": rng.standard_normal((2, 3)), "y": rng.standard_normal((2, 3))}
    nested, (last,) = S.contrib.foreach(
        lambda x, s: S.contrib.foreach(lambda x, s: (x * s[0], [s[0] + x]), x, s), X, [Y]
    )
    found = {
        "foreach": (S.Group([*rows, *states]), given, weight),
        "while_loop": (S.Group([*counted, end]), start, {}),
        "cond": (chosen, two, {}),
        "cond_other": (chosen, {"x": two["y"], "y": two["x"]}, {}),
        "foreach_foreach": (S.Group([nested, last]), {"x": rng.standard_normal((2, 3, 4)), "y": np.ones(4)}, {}),
    }
    as_floats = lambda arrays: {name: np.asarray(array, "float32") for name, array in arrays.items()}  # noqa: E731
    return {name: (symbol, as_floats(inputs), weights) for name, (symbol, inputs, weights) in found.items()}
