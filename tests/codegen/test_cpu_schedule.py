"""Schedules of CPU kernels: the numbers of NumPy in double precision, and the loops that are wanted."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tvm
from numpy.typing import NDArray
from tvm import relax, s_tir, te, tirx

from tvm_neuron.codegen.cpu.functions import expand
from tvm_neuron.codegen.cpu.inline import MOST_CONDITIONS
from tvm_neuron.codegen.cpu.schedule import scheduled

Build = Callable[[relax.BlockBuilder, Any], Any]


def _softmax(x: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def _normalised(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


CASES: list[tuple[str, tuple[int, ...], Build, Callable[[NDArray[np.float64]], NDArray[np.float64]]]] = [
    ("softmax", (3, 50, 128), lambda bb, x: relax.op.nn.softmax(x, -1), lambda x: _softmax(x, -1)),
    ("softmax of a prime", (3, 50, 197), lambda bb, x: relax.op.nn.softmax(x, -1), lambda x: _softmax(x, -1)),
    ("softmax, 24 lanes", (3, 5, 72), lambda bb, x: relax.op.nn.softmax(x, -1), lambda x: _softmax(x, -1)),
    ("softmax, 31 lanes", (3, 5, 124), lambda bb, x: relax.op.nn.softmax(x, -1), lambda x: _softmax(x, -1)),
    ("softmax, few", (2, 10), lambda bb, x: relax.op.nn.softmax(x, -1), lambda x: _softmax(x, -1)),
    ("softmax, other axis", (3, 21, 40, 30), lambda bb, x: relax.op.nn.softmax(x, 1), lambda x: _softmax(x, 1)),
    ("mean", (64, 28, 28), lambda bb, x: relax.op.mean(x, [1, 2]), lambda x: x.mean((1, 2))),
    ("sum of all", (64, 28, 28), lambda bb, x: relax.op.sum(x), lambda x: x.sum()),
    ("sum, first axis", (64, 28, 100), lambda bb, x: relax.op.sum(x, [0]), lambda x: x.sum(0)),
    ("sum, middle axis", (8, 28, 513), lambda bb, x: relax.op.sum(x, [1]), lambda x: x.sum(1)),
    ("max, one row", (1, 30000), lambda bb, x: relax.op.max(x, [1]), lambda x: x.max(1)),
    ("nothing", (3, 0, 5), lambda bb, x: relax.op.sum(x, [1]), lambda x: x.sum(1)),
    ("one long axis", (30000,), lambda bb, x: relax.op.tanh(relax.op.add(x, x)), lambda x: np.tanh(x + x)),
    ("transposed", (70, 80, 9), lambda bb, x: relax.op.permute_dims(x, [2, 0, 1]), lambda x: x.transpose(2, 0, 1)),
    (
        "squares of squares",
        (90, 200),
        lambda bb, x: relax.op.square(relax.op.square(relax.op.square(x))),
        lambda x: x**8,
    ),
    (
        "normalised",
        (16, 10, 96),
        lambda bb, x: relax.op.nn.layer_norm(
            x, relax.const(np.ones(96, np.float32)), relax.const(np.zeros(96, np.float32)), [-1]
        ),
        _normalised,
    ),
    (
        "gate",
        (40, 600),
        lambda bb, x: relax.op.multiply(bb.emit(relax.op.sigmoid(x)), bb.emit(relax.op.exp(x))),
        lambda x: np.exp(x) / (1 + np.exp(-x)),
    ),
]


def kernels_of(shape: tuple[Any, ...], build: Build) -> tvm.IRModule:
    bb, x = relax.BlockBuilder(), relax.Var("x", relax.TensorType(shape, "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            result = bb.emit_output(build(bb, x))
        bb.emit_func_output(result)
    passes = [
        relax.transform.LegalizeOps(), relax.transform.AnnotateTIROpPattern(), relax.transform.FuseOps(),
        relax.transform.FuseTIR(),
    ]  # fmt: skip
    return tvm.transform.Sequential(passes)(bb.get())


def with_schedules(mod: tvm.IRModule) -> tvm.IRModule:
    mod = mod.clone()
    for var, func in mod.functions_items():
        if isinstance(func, tirx.PrimFunc):
            mod.update_func(var, expand(scheduled(func)))
    return mod


@pytest.mark.parametrize(("shape", "build", "meaning"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_the_numbers(shape: tuple[int, ...], build: Build, meaning: Callable[[Any], Any]) -> None:
    x = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
    with tvm.target.Target("llvm"):
        machine = relax.VirtualMachine(tvm.compile(with_schedules(kernels_of(shape, build)), "llvm"), tvm.cpu())
    wanted = meaning(x.astype(np.float64))
    found = machine["main"](tvm.runtime.tensor(x)).numpy()
    # n steps, each rounded to 2**-24 of a sum that grows to about n**0.5, in sqrt(n) as independent errors
    steps = x.size / max(found.size, 1) + 1
    np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=2.0**-24 * steps)


def loops_of(shape: tuple[Any, ...], build: Build) -> str:
    (kernel,) = [f for _, f in kernels_of(shape, build).functions_items() if isinstance(f, tirx.PrimFunc)]
    return scheduled(kernel).script()


def test_rows_are_parallel_and_summed_in_lanes() -> None:
    script = loops_of((30, 50, 128), lambda bb, x: relax.op.nn.softmax(x, -1))
    assert script.count("T.parallel(") == 1
    assert script.count("T.vectorized(") >= 2


def test_cheap_steps_never_go_to_memory() -> None:
    script = loops_of((800, 800), lambda bb, x: relax.op.add(bb.emit(relax.op.multiply(x, x)), x))
    assert "sblock_alloc_buffer" not in script
    assert script.count("T.parallel(") == 1


def test_conditions_do_not_gather_in_one_expression() -> None:
    """For each of ten TVM would write its loops in two ways, and these again: minutes for one kernel."""

    def build(bb: relax.BlockBuilder, x: Any) -> Any:
        padded = [bb.emit(relax.op.nn.pad(x, [0, 0, size, size + 1])) for size in range(10)]
        found = padded[0]
        for other in padded[1:]:
            part = bb.emit(relax.op.strided_slice(other, [1], [0], [21]))
            found = bb.emit(relax.op.maximum(bb.emit(relax.op.strided_slice(found, [1], [0], [21])), part))
        return found

    expressions = loops_of((30, 20), build).split("T.writes(")[1:]
    counts = [part.split("T.reads(")[0].count("T.if_then_else(") for part in expressions]
    assert 1 <= max(counts) <= MOST_CONDITIONS
    assert sum(counts) == 10


def test_small_kernels_stay_on_one_thread() -> None:
    assert "T.parallel(" not in loops_of((10, 10), lambda bb, x: relax.op.add(x, x))


def test_sizes_known_at_run_time() -> None:
    size = tirx.Var("n", "int64")
    build: Build = lambda bb, x: relax.op.nn.softmax(x, -1)  # noqa: E731
    assert "T.parallel(" in loops_of((size, size), build)
    machine = relax.VirtualMachine(tvm.compile(with_schedules(kernels_of((size, size), build)), "llvm"), tvm.cpu())
    x = np.random.default_rng(0).standard_normal((37, 37), dtype=np.float32)
    found = machine["main"](tvm.runtime.tensor(x)).numpy()
    np.testing.assert_allclose(found, _softmax(x.astype(float), -1), rtol=1e-6)


def test_exp_everywhere() -> None:
    special = [np.inf, -np.inf, np.nan, 0, -0.0, 1e-30, 88.72, 88.73, -87.5, -103.9, -104.1, 3e38, -3e38]
    x = np.concatenate([np.linspace(-110, 95, 200_000), special]).astype(np.float32)
    at = te.placeholder((len(x),), name="x")
    kernel = expand(te.create_prim_func([at, te.compute((len(x),), lambda i: tirx.exp(at[i]))]))
    assert not re.search(r"T\.exp\(", kernel.script())
    result = tvm.runtime.tensor(np.zeros_like(x))
    tvm.compile(tvm.IRModule({"main": kernel}), "llvm")["main"](tvm.runtime.tensor(x), result)
    with np.errstate(over="ignore", invalid="ignore"):
        wanted = np.exp(x.astype(np.float64))
        rounded = wanted.astype(np.float32)
        off = np.abs(result.numpy() - wanted) / np.spacing(np.minimum(rounded, np.finfo(np.float32).max))
    np.testing.assert_array_equal(np.isfinite(result.numpy()), np.isfinite(rounded))
    np.testing.assert_array_equal(np.isnan(result.numpy()), np.isnan(rounded))
    assert off[np.isfinite(rounded)].max() < 2


def test_what_calls_functions_stays_as_it_is() -> None:
    at = te.placeholder((5,), name="x")
    kernel = te.create_prim_func([at, tvm.topi.sort(at)])
    assert scheduled(kernel).same_as(kernel)
    assert isinstance(kernel.body, s_tir.SBlockRealize)
