"""Networks in plain JAX agree with JAX as far as bfloat16 lets them; a step of training is one program."""

from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tvm_neuron
import tvm_neuron.jax
from tests.jax.test_functions import EXACT, FLOAT32, check, run
from tvm_neuron.cli.main import main
from tvm_neuron.errors import ModelError
from tvm_neuron.runtime import manifest

pytestmark = [pytest.mark.jax, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
BFLOAT16 = 0.03
"""Relative, of networks of ten layers: 2^-9 for each rounding of operands, added up."""
_RNG = np.random.default_rng(1)


def weight(*shape: int) -> np.ndarray:
    return (_RNG.standard_normal(shape) / np.sqrt(np.prod(shape[:-1]))).astype(np.float32)


def resnet() -> tuple[Any, tuple]:
    params = {"stem": weight(3, 3, 3, 16), "head": weight(32, 10)}
    for number, (inputs, outputs) in enumerate([(16, 16), (16, 32)]):
        params[f"block{number}"] = {
            "a": weight(3, 3, inputs, outputs),
            "b": weight(3, 3, outputs, outputs),
            "skip": weight(1, 1, inputs, outputs),
        }

    def conv(x: jax.Array, w: jax.Array, stride: int) -> jax.Array:
        return jax.lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def norm(x: jax.Array) -> jax.Array:
        return (x - x.mean((0, 1, 2))) * jax.lax.rsqrt(x.var((0, 1, 2)) + 1e-5)

    def network(params: dict, x: jax.Array) -> jax.Array:
        x = jax.nn.relu(norm(conv(x, params["stem"], 1)))
        for number in range(2):
            block, stride = params[f"block{number}"], number + 1
            inner = norm(conv(jax.nn.relu(norm(conv(x, block["a"], stride))), block["b"], 1))
            x = jax.nn.relu(inner + conv(x, block["skip"], stride))
        return jax.nn.log_softmax(x.mean((1, 2)) @ params["head"])

    return network, (params, _RNG.standard_normal((2, 16, 16, 3)).astype(np.float32))


def transformer() -> tuple[Any, tuple]:
    width, heads = 64, 4
    params = {name: weight(width, width) for name in ("q", "k", "v", "o")}
    params |= {"up": weight(width, 4 * width), "down": weight(4 * width, width), "table": weight(100, width)}

    def norm(x: jax.Array) -> jax.Array:
        return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)

    def network(params: dict, tokens: jax.Array) -> jax.Array:
        x = jnp.asarray(params["table"])[tokens]
        q, k, v = (jnp.reshape(norm(x) @ params[name], (*tokens.shape, heads, -1)) for name in "qkv")
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / 4.0
        mask = jnp.tril(jnp.ones((tokens.shape[1],) * 2, bool))
        probs = jax.nn.softmax(jnp.where(mask, scores, -1e9))
        x = x + jnp.einsum("bhqk,bkhd->bqhd", probs, v).reshape(*tokens.shape, width) @ params["o"]
        return x + jax.nn.gelu(norm(x) @ params["up"]) @ params["down"]

    return network, (params, _RNG.integers(0, 100, (2, 12)).astype(np.int32))


def lstm() -> tuple[Any, tuple]:
    size = 24
    params = {"x": weight(8, 4 * size), "h": weight(size, 4 * size), "b": weight(1, 4 * size)[0]}

    def network(params: dict, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        def step(state: tuple, t: jax.Array) -> tuple:
            h, c = state
            i, f, g, o = jnp.split(t @ params["x"] + h @ params["h"] + params["b"], 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        start = jnp.zeros((x.shape[1], size))
        (h, _), all_of_them = jax.lax.scan(step, (start, start), x)
        return h, all_of_them

    return network, (params, _RNG.standard_normal((6, 2, 8)).astype(np.float32))


NETWORKS = {"resnet": resnet, "transformer": transformer, "lstm": lstm}


@pytest.mark.parametrize("name", NETWORKS)
def test_agrees_with_jax(name: str) -> None:
    network, (params, x) = NETWORKS[name]()
    closed = partial(network, params)  # weights are constants of the library
    library = tvm_neuron.jax.compile(closed, x, target="neuron/inf2")
    found = run(library, (x,))
    for got, right in zip(found, map(np.asarray, jax.tree.leaves(jax.jit(closed)(x))), strict=True):
        assert np.linalg.norm(got - right) < BFLOAT16 * np.linalg.norm(right)
    heavy = {"Conv", "MatMul", "Einsum"}
    assert not [row for row in manifest(library.module)["placement"] if row["op"] in heavy and row["where"] == "cpu"]


def test_a_step_of_training_is_one_program() -> None:
    params = {"a": weight(8, 16), "b": weight(16, 4)}
    x, y = _RNG.standard_normal((5, 8)).astype(np.float32), weight(5, 4)

    def loss(params: dict, x: jax.Array, y: jax.Array) -> jax.Array:
        return ((jnp.tanh(x @ params["a"]) @ params["b"] - y) ** 2).mean()

    def step(params: dict, x: jax.Array, y: jax.Array) -> tuple:
        value, gradients = jax.value_and_grad(loss)(params, x, y)
        return value, jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)

    library = tvm_neuron.compile(jax.jit(step), (params, x, y), "neuron/inf2", options=EXACT)
    check(run(library, (params, x, y)), step(params, x, y), FLOAT32)


def test_plain_functions_are_told_by_their_arguments() -> None:
    def affine(x: jax.Array, w: jax.Array) -> jax.Array:
        return jnp.tanh(x @ w)

    x, w = weight(3, 8), weight(8, 4)
    for given in ((jnp.asarray(x), w), (jax.ShapeDtypeStruct(x.shape, x.dtype), w)):
        check(run(tvm_neuron.compile(affine, given, options=EXACT), (x, w)), affine(x, w), FLOAT32)
    with pytest.raises(ModelError, match=r"a plain function is taken with .* of JAX give jax.jit"):
        tvm_neuron.compile(affine, (x, w))


def test_files_of_stablehlo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def network(x: jax.Array) -> jax.Array:
        return jnp.tanh(x @ np.eye(4, dtype=np.float32) * 2)

    x = _RNG.standard_normal((3, 4)).astype(np.float32)
    exported = jax.export.export(jax.jit(network))(x)
    (tmp_path / "net.mlirbc").write_bytes(exported.mlir_module_serialized)
    (tmp_path / "net.mlir").write_text(jax.jit(network).lower(x).as_text())
    for name in ("net.mlirbc", "net.mlir"):
        check(run(tvm_neuron.compile(tmp_path / name, options=EXACT), (x,)), network(x), FLOAT32)
    out = str(tmp_path / "net.neff")
    assert main(["compile", str(tmp_path / "net.mlir"), "--framework", "XLA", "--output", out, "--cache", "off"]) == 0
    capsys.readouterr()
    (tmp_path / "no.mlir").write_text("module { what }")
    with pytest.raises(ModelError, match=r"no.mlir' is no StableHLO"):
        tvm_neuron.compile(tmp_path / "no.mlir")
    with pytest.raises(ModelError, match=r"none.mlir' can't be read: No such file"):
        tvm_neuron.compile(tmp_path / "none.mlir")


def test_files_of_hlo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def network(x: jax.Array) -> jax.Array:
        return jax.nn.softmax(jnp.tanh(x @ np.eye(4, dtype=np.float32) * 2))

    x = _RNG.standard_normal((3, 4)).astype(np.float32)
    module = jax.jit(network).lower(x).compiler_ir("hlo").as_serialized_hlo_module_proto()
    whole = b"\x0a" + bytes([len(module) & 0x7F | 0x80, len(module) >> 7]) + module  # an HloProto, as XLA dumps it
    assert len(module) < 1 << 14
    for name, content in (("net.hlo", module), ("net.hlo.pb", whole), ("module.pb", module)):
        (tmp_path / name).write_bytes(content)
        check(run(tvm_neuron.compile(tmp_path / name, options=EXACT), (x,)), network(x), FLOAT32)
    words = ["compile", str(tmp_path / "module.pb"), "--framework", "XLA", "--output", str(tmp_path / "net.neff")]
    assert main([*words, "--cache", "off"]) == 0
    assert main(["check-model", str(tmp_path / "net.hlo")]) == 0
    capsys.readouterr()
    for name, content, said in (
        ("text.hlo", b"HloModule jit_network", "holds no HloModuleProto or HloProto"),
        ("torn.hlo", module[:-9], "holds no HloModuleProto or HloProto"),
        ("wrong.hlo", b"\x1a\x02\x0a\x00\x30\x07", "is HLO that jaxlib can't read"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ModelError, match=said):
            tvm_neuron.compile(tmp_path / name)
