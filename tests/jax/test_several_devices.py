"""Programs for several devices agree with JAX on as many CPU devices; what their cores exchange takes time."""

import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh, Mesh
from jax.sharding import PartitionSpec as P

import tvm_neuron
import tvm_neuron.jax
from tests.jax.functions import floats, truths, whole
from tests.jax.test_functions import EXACT, FLOAT32, check, run
from tvm_neuron.cli.main import main
from tvm_neuron.errors import ModelError, OptionError
from tvm_neuron.profile.tables import render
from tvm_neuron.runtime import manifest

pytestmark = [pytest.mark.jax, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
AXIS = "i"


def mesh(*sizes: int) -> Mesh:
    names = (AXIS, "j")[: len(sizes)]
    return Mesh(np.array(jax.devices()[: int(np.prod(sizes))]).reshape(sizes), names)


def sharded(body: Any, in_specs: Any, out_specs: Any, over: Any = None) -> Any:
    return jax.shard_map(body, mesh=over or mesh(4), in_specs=in_specs, out_specs=out_specs, check_vma=False)


def agrees(function: Any, *args: Any, tolerance: float = FLOAT32) -> Any:
    library = tvm_neuron.jax.compile(function, *args, target="neuron/inf2", options=EXACT)
    check(run(library, args), jax.jit(function)(*args), tolerance)
    return library


def looped(x: jax.Array) -> jax.Array:
    def step(carry: jax.Array, row: jax.Array) -> tuple:
        carry = jnp.tanh(jax.lax.psum(carry, AXIS) / 4 + row)
        return carry, carry.sum()

    return jax.lax.scan(step, x[0], x)[1]


COLLECTIVES = {
    "psum": (lambda x: jax.lax.psum(x, AXIS), P()),
    "psum_of_a_sum": (lambda x: jax.lax.psum(x.sum(), AXIS), P()),
    "psum_of_several": (lambda x: sum(jax.lax.psum((x, x * 2), AXIS)), P()),
    "pmax": (lambda x: jax.lax.pmax(x, AXIS), P()),
    "pmin": (lambda x: jax.lax.pmin(x, AXIS), P()),
    "pmean": (lambda x: jax.lax.pmean(jnp.exp(x), AXIS), P()),
    "in_groups": (lambda x: jax.lax.psum(x, AXIS, axis_index_groups=[[0, 2], [3, 1]]), P(AXIS)),
    "all_gather": (lambda x: jax.lax.all_gather(x * 2, AXIS), P(None, AXIS)),
    "all_gather_tiled": (lambda x: jax.lax.all_gather(x * 2, AXIS, axis=1, tiled=True), P(AXIS)),
    "psum_scatter": (lambda x: jax.lax.psum_scatter(x.T, AXIS, tiled=True) + 1, P(AXIS)),
    "psum_scatter_in_columns": (lambda x: jax.lax.psum_scatter(x, AXIS, scatter_dimension=1, tiled=True), P(AXIS)),
    "ppermute": (lambda x: jax.lax.ppermute(x, AXIS, [(0, 2), (2, 3), (3, 0)]), P(AXIS)),
    "all_to_all": (lambda x: jax.lax.all_to_all(x, AXIS, 1, 0, tiled=True), P(AXIS)),
    "axis_index": (lambda x: x + jax.lax.axis_index(AXIS), P(AXIS)),
    "in_a_jitted_function": (lambda x: jax.jit(lambda y: jax.lax.psum(y, AXIS))(x) * x, P(AXIS)),
    "in_a_scan": (looped, P(AXIS)),
    "nothing": (lambda x: jnp.exp(x), P(AXIS)),
    "a_constant": (lambda x: x[:, :2] + jax.lax.psum_scatter(jnp.arange(8.0), AXIS, tiled=True), P(AXIS)),
}  # fmt: skip


@pytest.mark.parametrize("name", COLLECTIVES)
def test_gives_what_jax_gives(name: str) -> None:
    body, specs = COLLECTIVES[name]
    agrees(sharded(body, P(AXIS), specs), floats(8, 12))


@pytest.mark.parametrize("dtype", ["int32", "bfloat16", "float16"])
def test_dtypes(dtype: str) -> None:
    x = jnp.asarray(whole(50, 8, 6)).astype(dtype)  # whose sums these floats have exactly
    agrees(sharded(lambda x: (jax.lax.psum(x, AXIS), jax.lax.all_gather(x, AXIS)), P(AXIS), P()), x)


def test_bools() -> None:
    def body(x: jax.Array) -> tuple:
        return jax.lax.psum(x.all(0).astype(np.int32), AXIS) == 4, jax.lax.pmax(x, AXIS)

    agrees(sharded(body, P(AXIS), P()), truths(8, 5))


def test_a_mesh_of_two_axes() -> None:
    def body(x: jax.Array, w: jax.Array) -> tuple:
        y = x @ w
        return jax.lax.psum(y, "j"), jax.lax.psum(y, (AXIS, "j")), jax.lax.all_gather(x, (AXIS, "j"), tiled=True)

    function = sharded(body, (P(AXIS, "j"), P("j")), (P(AXIS), P(), P()), mesh(2, 4))
    agrees(lambda x, w: function(x * 2, w)[0].sum(0) + function(x, w)[1].sum(), floats(4, 8), floats(8, 3))
    agrees(lambda x: sharded(lambda x: x + 1, P((AXIS, "j")), P(("j", AXIS)), mesh(2, 2))(x), floats(8, 3))


def test_pmap() -> None:
    def each(x: jax.Array, w: jax.Array) -> jax.Array:
        return jnp.tanh(x @ w) / jax.lax.psum(jnp.exp(x).sum(), AXIS)

    x, w = floats(4, 3, 5), floats(4, 5, 2)
    function = jax.pmap(each, axis_name=AXIS)
    library = tvm_neuron.compile(function, (x, w), "neuron/inf2", options=EXACT)
    check(run(library, (x, w)), function(x, w), FLOAT32)


def loss(params: dict, x: jax.Array, y: jax.Array) -> jax.Array:
    return ((jnp.tanh(x @ params["a"]) @ params["b"] - y) ** 2).mean()


def test_a_step_of_training_on_parts_of_the_batch() -> None:
    def step(params: dict, x: jax.Array, y: jax.Array) -> tuple:
        value, gradients = jax.value_and_grad(loss)(params, x, y)
        gradients = jax.lax.pmean(gradients, AXIS)
        return jax.lax.pmean(value, AXIS), jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)

    params = {"a": floats(8, 16), "b": floats(16, 4)}
    args = params, floats(32, 8), floats(32, 4)
    library = agrees(sharded(step, (P(), P(AXIS), P(AXIS)), P()), *args)
    value, new = jax.jit(lambda *args: jax.value_and_grad(loss)(*args))(*args)
    alone = value, jax.tree.map(lambda p, g: p - 0.1 * g, params, new)
    check(run(library, args), alone, FLOAT32)  # and what one device makes of the whole batch
    found = tvm_neuron.report(library)
    assert found.spmd is not None
    assert [row.operation for row in found.spmd.exchanges] == ["all_reduce"] * 3
    assert found.latency_us == pytest.approx(sum(part.latency_us for part in found.subgraphs) + found.spmd.added_us)
    assert found.spmd.exchange_us > 3 * 2 * 3 * 1.3  # of each 6 rounds, which begin by the start of a DMA
    assert {row.tensor for row in found.transfers} < {info["name"] for info in manifest(library)["inputs"]} | {
        row.tensor for row in found.transfers if row.direction == "from the NeuronCore"
    }
    assert "Exchanges of 4 cores of inf2.48xlarge" in str(render(found).renderables[-2].title)


def test_a_layer_on_parts_of_its_weights(tmp_path: Path) -> None:
    """Columns of the first weights and rows of the second on each core: one psum for both."""

    def body(x: jax.Array, up: jax.Array, down: jax.Array) -> jax.Array:
        return jax.lax.psum(jax.nn.gelu(x @ up) @ down, AXIS)

    function = sharded(body, (P(), P(None, AXIS), P(AXIS)), P())
    up, down = floats(16, 64), floats(64, 16)
    x = floats(4, 16)
    agrees(lambda x: function(x, jnp.asarray(up), jnp.asarray(down)), x)  # constants, cut
    library = agrees(function, x, up, down)
    path = tmp_path / "layer.so"
    library.export_library(path)
    np.savez(tmp_path / "given.npz", x=x, up=up, down=down)
    script = (
        "import numpy as np, sys, tvm, tvm_neuron.runtime\n"
        f"executor = tvm.runtime.load_module({str(path)!r})['default'](tvm.cpu())\n"
        f"executor.run(**np.load({str(tmp_path / 'given.npz')!r}))\n"
        f"np.save({str(tmp_path / 'found.npy')!r}, executor.get_output(0).numpy())\n"
        "assert 'jax' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "found.npy"), run(library, (x, up, down))[0])


def test_without_devices() -> None:
    """An abstract mesh is enough to compile, also for more devices than there are here."""
    function = sharded(lambda x: jax.lax.psum(x * 2, AXIS), P(AXIS), P(), AbstractMesh((16,), (AXIS,)))
    x = floats(16, 5)
    library = tvm_neuron.jax.compile(function, x, target="neuron/inf2", options=EXACT)
    check(run(library, (x,)), (2 * x.sum(0, keepdims=True),), FLOAT32)
    one = tvm_neuron.BuildOptions(instance="inf2.xlarge")
    with pytest.raises(OptionError, match=r"for 16 devices, and inf2\.xlarge has 2 NeuronCores: lower it"):
        tvm_neuron.jax.compile(function, x, target="neuron/inf2", options=one)
    with pytest.raises(OptionError, match="pipeline_cores and dynamic_batch are not for programs on several devices"):
        tvm_neuron.jax.compile(function, x, target="neuron/inf2", options=tvm_neuron.BuildOptions(pipeline_cores=2))


def test_random_programs() -> None:
    """Chains of operators and exchanges, drawn, on values that all cores and that each of them have."""
    rng = np.random.default_rng(7)
    steps = [
        lambda x, w: jnp.tanh(x @ w),
        lambda x, w: jax.lax.psum(x, AXIS) / 4,
        lambda x, w: jax.lax.all_gather(x, AXIS, tiled=True)[::4],
        lambda x, w: jax.lax.psum_scatter(x, AXIS, scatter_dimension=1, tiled=True).repeat(4, 1),
        lambda x, w: jax.lax.ppermute(x, AXIS, [(0, 1), (1, 2), (2, 3), (3, 0)]) + x,
        lambda x, w: x * (jax.lax.axis_index(AXIS) + 1) / 4,
        lambda x, w: x + w.sum(),
    ]
    for _ in range(3):
        chosen = [steps[number] for number in rng.integers(0, len(steps), 5)]

        def body(x: jax.Array, w: jax.Array, chosen: Any = chosen) -> tuple:
            first = x
            for step in chosen:
                x = step(x, w)
            return x + w.sum(), jax.lax.pmean(first + x, AXIS)

        function = sharded(body, (P(AXIS), P()), (P(AXIS), P()))
        agrees(lambda x, w, f=function: [y * 2 for y in f(jnp.sin(x), w)], floats(16, 8), floats(8, 8))


TEXT = """
sdy.mesh @mesh = <["i"=4]>
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"i"}]>] out_shardings=[<@mesh, [{"i"}]>] manual_axes={"i"} (%y: tensor<2xf32>) {
    %1 = "stablehlo.all_reduce"(%y) <{replica_groups = dense<GROUPS> : tensor<SHAPExi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %2 = stablehlo.FUNCTION %a, %b : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<2xf32>) -> tensor<2xf32>
    sdy.return %1 : tensor<2xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""  # noqa: E501 - as JAX writes it


def write(path: Path, groups: str, shape: str, function: str = "add") -> Path:
    path.write_text(TEXT.replace("GROUPS", groups).replace("SHAPE", shape).replace("FUNCTION", function))
    return path


def test_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "net.mlir", "[[0, 1], [2, 3]]", "2x2")
    x = floats(8)
    (found,) = run(tvm_neuron.compile(path, target="neuron/inf2", options=EXACT), (x,))
    np.testing.assert_allclose(found.reshape(2, 2, 2), np.repeat(x.reshape(2, 2, 2).sum(1, keepdims=True), 2, 1))
    assert main(["compile", str(path), "--output", str(tmp_path / "net.neff"), "--cache", "off"]) != 0
    assert "is for 4 devices, and a .neff and its commands are of one program" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("groups", "shape", "function", "message"),
    [
        ("[[0, 1, 2]]", "1x3", "add", r"all_reduce\) can't be imported: its groups \[\[0, 1, 2\]\] do not hold"),
        ("[[0, 1, 2], [3, -1, -1]]", "2x3", "add", "do not hold each of the 4 devices once, in groups of one size"),
        ("[[0, 1, 2, 3]]", "1x4", "divide", "it combines values by other than add, multiply, maximum"),
    ],
)
def test_wrong_groups_are_refused(groups: str, shape: str, function: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=message):
        tvm_neuron.compile(write(tmp_path / "net.mlir", groups, shape, function))


def test_what_is_refused_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "net.mlir", "[[0, 1], [2, 3]]", "2x2")
    path.write_text(path.read_text().replace('["i"=4]>', '["i"=4], device_ids=[3, 2, 1, 0]>'))
    with pytest.raises(ModelError, match=r"devices of its mesh are in another order than 0, 1, ...: \[3, 2, 1, 0\]"):
        tvm_neuron.compile(path)
    partly = partial(jax.shard_map, mesh=mesh(2, 2), in_specs=P(AXIS), out_specs=P(), check_vma=False)
    with pytest.raises(ModelError, match="axes of its mesh are left to XLA: j; name all in shard_map's axis_names"):
        tvm_neuron.jax.compile(partly(lambda x: jax.lax.psum(x, AXIS), axis_names={AXIS}), floats(8, 2))

    def several(body: Any, count: int) -> Any:
        return sharded(body, P(AXIS), P(AXIS), AbstractMesh((count,), (AXIS,)))

    with pytest.raises(ModelError, match="it is for 2 devices, and another part of the program for 4"):
        tvm_neuron.jax.compile(lambda x: several(jnp.sin, 4)(x) + several(jnp.cos, 2)(x), floats(8, 2))
    with pytest.raises(ModelError, match="a program for 4 devices draws random numbers"):
        tvm_neuron.jax.compile(several(lambda x: x + jax.lax.rng_uniform(0.0, 1.0, (2, 2)), 4), floats(8, 2))
