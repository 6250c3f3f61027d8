"""Kernels of constants alone are computed at compile time, all at once, and leave nothing for TVM's own pass."""

from collections.abc import Callable

import numpy as np
import pytest
import tvm
from tvm import relax

from tvm_neuron.codegen.cpu.constants import fold_constants

RNG = np.random.default_rng(8)


def legalised(build: Callable[..., relax.Expr], shape: tuple[int, ...] = (4, 6)) -> tvm.IRModule:
    """A function that adds to its input what `build` makes of constants."""
    block = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(shape, "int64"))
    with block.function("main", [x]):
        with block.dataflow():
            found = block.emit_output(relax.op.add(x, build(block.emit)))
        block.emit_func_output(found)
    return relax.transform.LegalizeOps()(block.get())


def kernels_of(mod: tvm.IRModule) -> int:
    return sum(isinstance(b.value, relax.Call) for each in mod["main"].body.blocks for b in each.bindings)


def test_a_chain_of_them_is_one_constant(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = RNG.integers(-99, 99, (4, 6)), RNG.integers(1, 9, (6,))

    def build(emit: Callable[[relax.Expr], relax.Expr]) -> relax.Expr:
        turned = emit(relax.op.permute_dims(emit(relax.op.multiply(relax.const(a, "int64"), relax.const(b, "int64")))))
        halves = emit(relax.op.split(turned, 2, axis=0))  # a tuple, which stays and reads a constant
        both = emit(relax.op.concat([relax.TupleGetItem(halves, 1), relax.TupleGetItem(halves, 0)], axis=0))
        wide = emit(relax.op.left_shift(emit(relax.op.permute_dims(turned)), relax.const(3, "int64")))
        return emit(relax.op.add(wide, emit(relax.op.permute_dims(both))))

    made = []
    compile_module = tvm.compile
    monkeypatch.setattr(tvm, "compile", lambda *a, **k: made.append(a) or compile_module(*a, **k))
    mod = fold_constants(legalised(build))
    assert len(made) == 1
    x = RNG.integers(-99, 99, (4, 6))
    with tvm.target.Target("llvm"):
        machine = relax.VirtualMachine(compile_module(mod, target="llvm"), tvm.cpu())
    turned = (a * b).T
    wanted = x + (turned.T << 3) + np.concatenate([turned[3:], turned[:3]]).T
    np.testing.assert_array_equal(machine["main"](tvm.runtime.tensor(x)).numpy(), wanted)


@pytest.mark.parametrize("dtype", ["uint8", "int32", "float16", "bfloat16", "float64"])
def test_nothing_is_left_to_tvm(dtype: str) -> None:
    values = relax.const(RNG.integers(0, 2, (4, 6)).astype("float32"), "float32")

    def build(emit: Callable[[relax.Expr], relax.Expr]) -> relax.Expr:
        narrow = emit(relax.op.astype(values, dtype))
        one = emit(relax.op.zeros((6,), dtype))
        return emit(relax.op.astype(emit(relax.op.equal(narrow, one)), "int64"))

    mod = fold_constants(legalised(build))
    assert kernels_of(mod) == 1


def test_what_is_large_and_made_of_nothing_stays() -> None:
    mod = legalised(lambda emit: emit(relax.op.zeros((64, 64), "int64")), (64, 64))
    assert kernels_of(fold_constants(mod)) == 2
