"""Several batch sizes and sequence lengths in one library: the right one is chosen, and weights are held once."""

import gc
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import tvm
from onnx import helper

from tests.onnx_models import make_model
from tvm_neuron import BuildOptions, relay
from tvm_neuron.errors import InputError, NeffError, OptionError
from tvm_neuron.runtime import neffs, shared
from tvm_neuron.runtime.service import Service

RNG = np.random.default_rng(0)
WEIGHTS = {
    "w": RNG.standard_normal((64, 256)).astype(np.float32) / 8,
    "v": RNG.standard_normal((256, 64)).astype(np.float32) / 16,
    "k": np.int64([3]),
}
NODES = [
    helper.make_node("MatMul", ["x", "w"], ["h"], "first"),
    helper.make_node("Relu", ["h"], ["r"], "relu"),
    helper.make_node("MatMul", ["r", "v"], ["y"], "second"),
    helper.make_node("TopK", ["y", "k"], ["best", "where"], "top"),
]
SHAPES = [(1, 8, 64), (1, 32, 64), (4, 32, 64)]


def imported(shape: tuple[int, ...]) -> Any:
    model = make_model(NODES, {"x": list(shape)}, ["y", "best"], WEIGHTS, opset=18)
    return relay.frontend.from_onnx(model)


def reference(x: np.ndarray) -> list[np.ndarray]:
    model = make_model(NODES, {"x": list(x.shape)}, ["y", "best"], WEIGHTS, opset=18)
    return onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})


def check(executor: Any, x: np.ndarray) -> None:
    executor.run(x=x)
    for index, expected in enumerate(reference(x)):
        # two products of operands rounded to bf16 (2^-9 each), of up to 256 terms
        np.testing.assert_allclose(executor.get_output(index).numpy(), expected, rtol=0.02, atol=0.03)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("buckets")
    options = BuildOptions(on_cpu=("top",))
    made = relay.build_buckets([imported(shape) for shape in SHAPES], options=options)
    made.export_library(folder / "all.so")
    for number, shape in enumerate(SHAPES):
        mod, params = imported(shape)
        relay.build(mod, params=params, options=options).export_library(folder / f"{number}.so")
    return folder / "all.so"


def executor_of(path: Path) -> Any:
    return relay.graph_executor.GraphModule(tvm.runtime.load_module(str(path))["default"](tvm.cpu()))


def test_each_shape_runs_and_others_are_refused(path: Path) -> None:
    executor = executor_of(path)
    for shape in [*SHAPES, SHAPES[0]]:
        check(executor, RNG.standard_normal(shape).astype(np.float32))
    assert executor.get_input_info()[0] == {"x": (-1, -1, 64)}
    with pytest.raises(InputError, match="shape"):
        executor.run(x=np.zeros((2, 32, 64), np.float32))


def test_weights_are_in_the_file_once(path: Path) -> None:
    alone = [(path.parent / f"{number}.so").stat().st_size for number in range(len(SHAPES))]
    weights = sum(2 * array.size for array in WEIGHTS.values() if array.dtype == np.float32)
    assert path.stat().st_size < sum(alone) - (len(SHAPES) - 1) * 0.9 * weights


def test_rows_of_any_number_take_the_smallest_bucket_that_holds_them() -> None:
    shapes = [(1, 8, 64), (8, 8, 64), (3, 8, 64)]
    options = BuildOptions(dynamic_batch=True)
    executor = relay.graph_executor.GraphModule(
        relay.build_buckets([imported(shape) for shape in shapes], options=options)["default"]()
    )
    ran = []
    for bucket in executor.module._buckets:
        run = bucket.run
        bucket.run = lambda values, run=run, bucket=bucket: ran.append(bucket.batch) or run(values)
    assert executor.module.batch == 8
    for rows, expected in [(1, [1]), (2, [3]), (3, [3]), (4, [8]), (8, [8]), (17, [8, 8, 8])]:
        ran.clear()
        x = RNG.standard_normal((rows, 8, 64)).astype(np.float32)
        check(executor, x)
        assert ran == expected
        assert executor.module.runs_of({"x": x}) == ([1, 3, 8].index(expected[0]), len(expected))


def test_what_is_no_set_of_buckets() -> None:
    with pytest.raises(OptionError, match="build_buckets needs at least one import"):
        relay.build_buckets([])
    with pytest.raises(OptionError, match="two buckets have the same shapes"):
        relay.build_buckets([imported(SHAPES[0]), imported(SHAPES[0])])
    other = make_model([helper.make_node("Relu", ["z"], ["y"])], {"z": [1, 8]}, ["y"], {})
    with pytest.raises(OptionError, match="buckets must be imports of one model"):
        relay.build_buckets([imported(SHAPES[0]), relay.frontend.from_onnx(other)])


def test_a_service_loads_them(path: Path) -> None:
    with Service(total_cores=1, environment={}) as service:
        model = service.load(path)
        model.start()
        for shape in SHAPES:
            x = RNG.standard_normal(shape).astype(np.float32)
            assert model.infer({"x": x})["y"].shape[:2] == shape[:2]


def test_weights_go_with_the_last_who_has_them() -> None:
    gc.collect()  # the executors of other tests
    mod, params = imported(SHAPES[0])
    (data,) = neffs(relay.build(mod, params=params, options=BuildOptions(on_cpu=("top",)))).values()
    entries: dict[str, bytes] = {}
    outline = shared.outline(data, entries)
    assert len(outline) < len(data) - sum(map(len, entries.values())) + 1000
    with pytest.raises(NeffError, match="weights are not in a library that was opened"):
        shared.read(outline)
    source = shared.Source(entries, entries.__getitem__)
    assert shared.whole(outline) == data
    first, second = (shared.read(outline).cores[0].weights for _ in range(2))
    assert any(np.shares_memory(first[name], second[name]) for name in first)
    del source, first, second
    gc.collect()
    with pytest.raises(NeffError, match="weights are not in a library that was opened"):
        shared.read(outline)
