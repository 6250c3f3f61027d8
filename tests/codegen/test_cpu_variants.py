"""Kernels of CPU parts for several kinds of processors in one library: which there are, and which one runs."""

from pathlib import Path

import numpy as np
import pytest
import tvm
from onnx import helper
from tvm import relax, te

from tests.onnx_models import make_model
from tvm_neuron import BuildOptions, relay
from tvm_neuron.codegen import cpu
from tvm_neuron.codegen.cpu.variants import LEVEL
from tvm_neuron.runtime import host

ANY_X86 = {"kind": "llvm", "mtriple": "x86_64-linux-gnu"}
X = np.random.default_rng(0).standard_normal((40, 50, 128), dtype=np.float32)
POWERS = np.exp(X.astype(np.float64))
SOFTMAX = POWERS / POWERS.sum(-1, keepdims=True)


def softmax() -> tvm.IRModule:
    x = relax.Var("x", relax.TensorType(X.shape, "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.op.nn.softmax(x, -1)))
    return builder.get()


def lowered(target: dict[str, str]) -> tvm.IRModule:
    with tvm.target.Target(target):
        return cpu.lower(softmax())


def sevens(name: str) -> tvm.runtime.Module:
    """A kernel that can be told from the others by its results."""
    x = te.placeholder(X.shape, name="x")
    kernel = te.create_prim_func([x, te.compute(X.shape, lambda *_: tvm.tirx.const(7, "float32"))])
    return tvm.tirx.build(tvm.IRModule({name: kernel.with_attr("global_symbol", name)}), target="llvm")


@pytest.mark.parametrize("is_exported", [False, True])
def test_the_processor_decides(is_exported: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mod = lowered(ANY_X86).with_attr(
        "external_mods", [sevens("softmax_x86_64_v3")]
    )
    library = relax.build(mod, "llvm", relax_pipeline=None)
    if is_exported:
        library.export_library(tmp_path / "a.so")
        library = tvm.runtime.load_module(str(tmp_path / "a.so"))
    machine = relax.VirtualMachine(library, tvm.cpu())
    for flags, expected in ((host.LEVELS[LEVEL], 7), (host.LEVELS[LEVEL] - {"fma"}, SOFTMAX)):
        monkeypatch.setattr(host, "_flags", lambda flags=flags: flags)
        # 128 terms, each rounded to 2**-24 of a result below 1
        np.testing.assert_allclose(machine["main"](tvm.runtime.tensor(X)).numpy(), expected, rtol=2e-6, atol=1e-7)


def test_both_give_the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    mod, params = relay.frontend.from_onnx(
        make_model([helper.make_node("Softmax", ["x"], ["y"])], {"x": X.shape}, ["y"])
    )
    executor = relay.build(mod, params=params, options=BuildOptions(on_cpu=("*",)))["default"]()
    results = []
    for flags in (host._flags(), frozenset[str]()):
        monkeypatch.setattr(host, "_flags", lambda flags=flags: flags)
        executor.run(x=X)
        results.append(executor.get_output(0).numpy())
        np.testing.assert_allclose(results[-1], SOFTMAX, rtol=2e-6, atol=1e-7)
    np.testing.assert_allclose(results[0], results[1], rtol=1e-6)


def test_the_baseline_needs_nothing_newer() -> None:
    mod = lowered(ANY_X86)
    (newer,) = mod.attrs["external_mods"]
    assert "%ymm" in newer.inspect_source("asm")
    kernels = tvm.IRModule({var: func for var, func in mod.functions_items() if isinstance(func, tvm.tirx.PrimFunc)})
    older = tvm.tirx.build(kernels, target=tvm.target.Target(ANY_X86))
    assert "%ymm" not in older.inspect_source("asm")


@pytest.mark.parametrize("target", [{"mcpu": "x86-64-v2"}, {"mtriple": "aarch64-linux-gnu"}])
def test_other_targets_have_one_kernel_only(target: dict[str, str]) -> None:
    mod = lowered({"kind": "llvm"} | target)
    assert "external_mods" not in (mod.attrs or {})
    assert host.has_level.__name__ not in mod.script()
