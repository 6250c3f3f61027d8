"""A module of calls of Relax's own operators, each on inputs of its own, run by target="neuron" and by TVM's llvm."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm
from tvm import relax

from tvm_neuron import BuildOptions, build_options

Build = Callable[..., relax.Expr]
DRAWN = np.random.default_rng(5)


@dataclass(frozen=True)
class Case:
    """One call: `build` makes it of variables like `inputs`."""

    name: str
    build: Build
    inputs: tuple[np.ndarray, ...]


def normal(*shape: int) -> np.ndarray:
    return DRAWN.standard_normal(shape).astype("float32")


def positive(*shape: int) -> np.ndarray:
    return np.abs(normal(*shape)) + np.float32(0.1)


def fractions(*shape: int) -> np.ndarray:
    return DRAWN.uniform(-0.95, 0.95, shape).astype("float32")


def whole(*shape: int, low: int = 0, high: int = 7, dtype: str = "int64") -> np.ndarray:
    return DRAWN.integers(low, high, shape).astype(dtype)


def truths(*shape: int) -> np.ndarray:
    return DRAWN.integers(0, 2, shape).astype(bool)


def check(cases: Sequence[Case], tolerance: float) -> None:
    """Every result of the cases, together in one module, is the one of TVM's CPU.

    `tolerance` is the relative error of single values, and of the largest value of a tensor where terms cancel.
    """
    mod, inputs, counts = _module(cases)
    found = _on_core(mod, inputs)
    expected = _run(tvm.compile(mod, target=tvm.target.Target({"kind": "llvm"})), inputs)
    names = [case.name for case, count in zip(cases, counts, strict=True) for _ in range(count)]
    for name, actual, wanted in zip(names, found, expected, strict=True):
        assert actual.dtype == wanted.dtype, name
        finite = wanted[np.isfinite(wanted)] if wanted.dtype.kind == "f" else wanted.reshape(-1)
        largest = float(np.abs(finite.astype("float64")).max(initial=0))
        limit = {"rtol": tolerance, "atol": tolerance * largest} if wanted.dtype.kind == "f" else {"rtol": 0}
        np.testing.assert_allclose(actual, wanted, err_msg=name, **limit)


def results(case: Case) -> list[np.ndarray]:
    """What target="neuron" makes of one case."""
    mod, inputs, _ = _module([case])
    return _on_core(mod, inputs)


def _on_core(mod: tvm.IRModule, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    with build_options(BuildOptions(fp32_cast="none")):
        return _run(tvm.compile(mod, target="neuron/inf2"), inputs)


def _module(cases: Sequence[Case]) -> tuple[tvm.IRModule, list[np.ndarray], list[int]]:
    """The module, its inputs and how many tensors each case gives."""
    inputs = [array for case in cases for array in case.inputs]
    params = [relax.Var(f"x{i}", relax.TensorType(a.shape, str(a.dtype))) for i, a in enumerate(inputs)]
    builder, left, results, counts = relax.BlockBuilder(), iter(params), [], []
    with builder.function("main", params):
        with builder.dataflow():
            for case in cases:
                found = builder.emit(case.build(*[next(left) for _ in case.inputs]))
                parts = _parts(found, builder)
                results += parts
                counts.append(len(parts))
            output = builder.emit_output(relax.Tuple(results))
        builder.emit_func_output(output)
    return builder.get(), inputs, counts


def _parts(value: relax.Expr, builder: relax.BlockBuilder) -> list[relax.Expr]:
    if not isinstance(value.ty, relax.TupleType):
        return [value]
    return [builder.emit(relax.TupleGetItem(value, at)) for at in range(len(value.ty.fields))]


def _run(library: Any, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    machine = relax.VirtualMachine(library, tvm.cpu())
    return [value.numpy() for value in machine["main"](*map(tvm.runtime.tensor, inputs))]
