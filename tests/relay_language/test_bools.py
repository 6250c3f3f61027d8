"""Reductions of bools, which TVM's own kernels break off at, and choices by a bool that has no type yet."""

import numpy as np
import pytest
import tvm

from tvm_neuron import relay

TRUE = np.random.default_rng(5).random((3, 5)) < 0.4
REDUCTIONS = {"max": np.max, "min": np.min, "argmax": np.argmax, "argmin": np.argmin}


@pytest.mark.parametrize("target", ["neuron/inf2", "llvm"])
def test_reductions_of_bools(target: str) -> None:
    x = relay.var("x", shape=TRUE.shape, dtype="bool")
    results = [getattr(relay, name)(x, axis=1) for name in REDUCTIONS]
    results += [relay.cumsum(x, axis=1, dtype="int32"), relay.cumprod(x, axis=1)]
    func = relay.Function([x], relay.Tuple(results))
    found = relay.create_executor(mod=tvm.IRModule.from_expr(func), target=target).evaluate()(TRUE)
    wanted = [function(TRUE, axis=1) for function in REDUCTIONS.values()]
    wanted += [np.cumsum(TRUE, axis=1), np.logical_and.accumulate(TRUE, axis=1)]
    assert [str(each.dtype) for each in found] == ["bool", "bool", "int32", "int32", "int32", "bool"]
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one.numpy(), other)


def test_the_condition_of_an_if_is_a_bool() -> None:
    cond, x = relay.var("cond"), relay.var("x", shape=(2,))
    func = relay.Function([cond, x], relay.If(cond, x, relay.negative(x)))
    assert relay.testing.run_infer_type(func).params[0].checked_type == relay.TensorType((), "bool")
    run = relay.create_executor(mod=tvm.IRModule.from_expr(func), target="neuron").evaluate()
    assert run(True, np.float32([1, 2])).numpy().tolist() == [1, 2]
    assert run(False, np.float32([1, 2])).numpy().tolist() == [-1, -2]


def test_weights_of_convolutions_are_read_in_the_datas_dtype() -> None:
    rng = np.random.default_rng(6)
    image, weight = rng.standard_normal((1, 2, 6, 6), dtype="float32"), rng.standard_normal((3, 2, 1, 1))
    x = relay.var("x", shape=image.shape)
    func = relay.Function([x], relay.nn.conv2d(x, relay.const(weight)))
    found = relay.create_executor(mod=tvm.IRModule.from_expr(func), target="llvm").evaluate()(image).numpy()
    exact = np.einsum("oi,nihw->nohw", weight[:, :, 0, 0], image.astype("float64"))
    assert found.dtype == np.float32
    assert (abs(found - exact) <= 4 * 2.0**-24 * np.einsum("oi,nihw->nohw", abs(weight[:, :, 0, 0]), abs(image))).all()
