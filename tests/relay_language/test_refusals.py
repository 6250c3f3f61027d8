"""What operators of Relay refuse, in one sentence: axes and sizes that there are not, and results of negative size."""

import pytest

from tvm_neuron import relay
from tvm_neuron.errors import ModelError
from tvm_neuron.relay.testing import run_infer_type

X = relay.var("x", shape=(3, 4))
IMAGE = relay.var("image", shape=(1, 3, 8, 8))
AXIS = "axis 5 of a tensor of 2 dimensions"


@pytest.mark.parametrize(
    ("expr", "message"),
    [
        (relay.strided_slice(X, [0], [1], axes=[5]), AXIS),
        (relay.slice_like(X, X, axes=[5]), AXIS),
        (relay.take(X, relay.const([0]), axis=5), AXIS),
        (relay.transpose(X, (0, 5)), AXIS),
        (relay.concatenate([X, X], axis=5), AXIS),
        (relay.split(X, 2, axis=5).astuple(), AXIS),
        (relay.squeeze(X, axis=5), AXIS),
        (relay.topk(X, axis=5).astuple(), AXIS),
        (relay.max(X, axis=5), AXIS),
        (relay.one_hot(X, relay.const(1), relay.const(0), 2, 5, "int32"), "axis 5 of a tensor of 3 dimensions"),
        (relay.sliding_window(X, 5, [2], [1]), AXIS),
        (relay.sequence_mask(X, relay.const([1, 2, 3]), axis=5), AXIS),
        (relay.squeeze(X, axis=[0]), "axis 0 has 3 elements, not one"),
        (relay.topk(X, 9).astuple(), "k is 9, and there are 4 elements along axis -1"),
        (relay.split(X, (3, 9), axis=1).astuple(), r"axis 1 of 4 elements can't be cut at \[3, 9\]"),
        (relay.split(X, (3, 1), axis=1).astuple(), r"axis 1 of 4 elements can't be cut at \[3, 1\]"),
        (relay.tile(X, (-1, 2)), r"tile_0 \(tile\): its result would have the shape \[-3, 8\]"),
        (relay.repeat(X, -1, 0), r"its result would have the shape \[-3, 4\]"),
        (relay.nn.max_pool2d(IMAGE, (30, 30)), r"its result would have the shape \[1, 3, -21, -21\]"),
        (relay.image.resize2d(X, (2, 2)), "a tensor of 2 dimensions has no layout NCHW"),
        (relay.mean(relay.cast(X, "bool")), "its operand is bool, which has no mean: cast it to numbers first"),
        (relay.sqrt(relay.cast(X, "int32")), r"\(sqrt\): requires the input tensor to have float dtype\. However, the "
         "given input dtype is int32"),
        (relay.nn.pad(X, ((1, 1),)), r"\(nn\.pad\): Illegal pad_width"),
    ],
)  # fmt: skip
def test_what_there_is_not(expr: relay.Expr, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        run_infer_type(expr)
