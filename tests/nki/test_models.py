"""Kernels inside models: from Relax and from ONNX, with constants, beside each other and beside compiled operators."""

import numpy as np
import onnx
import pytest
import tvm
from onnx import TensorProto, helper, numpy_helper
from tvm import relax

import tvm_neuron
import tvm_neuron.nki as nki
import tvm_neuron.nki.language as nl
from tests.nki.test_kernels import FLOAT32, check, normal
from tvm_neuron import relay
from tvm_neuron.errors import KernelError, ModelError
from tvm_neuron.frontend.by_hand import KERNELS

Array = np.ndarray


@nki.jit
def row_softmax(x):  # type: ignore[no-untyped-def]
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    powers = nl.exp(tile - nl.max(tile, axis=1))
    nl.store(out, value=powers / nl.sum(powers, axis=1))
    return out


@nki.jit
def scaled_and_its_sum(x, weight):  # type: ignore[no-untyped-def]
    scaled = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    total = nl.ndarray((x.shape[0], 1), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.multiply(nl.load(x), nl.load(weight))
    nl.store(scaled, value=tile)
    nl.store(total, value=nl.sum(tile, axis=1, keepdims=True))
    return scaled, total


@nki.jit
def same_twice(x):  # type: ignore[no-untyped-def]
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, value=nl.load(x))
    return out, out


def softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(1, keepdims=True))
    return np.asarray(powers / powers.sum(1, keepdims=True))


def module(shape: tuple[int, ...], body, dtype: str = "float32") -> tvm.IRModule:  # type: ignore[no-untyped-def]
    builder, x = relax.BlockBuilder(), relax.Var("x", relax.TensorType(shape, dtype))
    with builder.function("main", [x]):
        with builder.dataflow():
            result = builder.emit_output(body(builder, x))
        builder.emit_func_output(result)
    return builder.get()


def run(library: tvm.runtime.Executable, *arrays: Array) -> Array:
    machine = relax.VirtualMachine(library, tvm.cpu())
    return np.asarray(machine["main"](*map(tvm.runtime.tensor, arrays)).numpy())


def test_two_kernels_after_each_other_between_compiled_operators() -> None:
    def body(builder: relax.BlockBuilder, x: relax.Var) -> relax.Expr:
        y = builder.emit(relax.op.nn.relu(x))
        for _ in range(2):
            y = builder.emit(nki.call(row_softmax, y, instead_of=_compiled))
        return relax.op.add(y, x)

    x = 3 * normal(100, 200)
    library = tvm.compile(module(x.shape, body), target="neuron/inf2")
    wide = x.astype(np.float64)
    check(run(library, x), softmax(softmax(np.maximum(wide, 0))) + wide, FLOAT32)
    report = tvm_neuron.report(library)
    assert [row.where for row in report.placement] == ["neuroncore"] * 4
    assert [row.subgraph for row in report.kernels] == ["neuron_1", "neuron_2"]
    alone = row_softmax.on("inf2").trace(x).time().latency_us
    instead = tvm_neuron.report(
        tvm.compile(module(x.shape, lambda _, y: _compiled(y)), target="neuron/inf2")
    ).latency_us
    for row in report.kernels:
        assert row.latency_us == alone
        assert row.compiled_us == pytest.approx(instead, rel=1e-6)


def _compiled(x: relax.Expr) -> relax.Expr:
    return relax.op.nn.softmax(x, axis=-1)


def onnx_model(domain: str = "tvm_neuron.nki", op: str = "scaled_and_its_sum") -> onnx.ModelProto:
    weight = numpy_helper.from_array(np.linspace(-2, 2, 64 * 96, dtype=np.float32).reshape(64, 96), "w")
    nodes = [
        helper.make_node("Abs", ["x"], ["a"], "abs"),
        helper.make_node(op, ["a", "w"], ["scaled", "total"], "by_hand", domain=domain),
        helper.make_node("Add", ["scaled", "total"], ["y"], "add"),
    ]
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [64, 96]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "net", infos[:1], infos[1:], [weight])
    imports = [helper.make_opsetid("", 17), helper.make_opsetid(domain, 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def test_a_node_of_the_domain_with_a_weight_and_two_results() -> None:
    nki.register("scaled_and_its_sum", scaled_and_its_sum)
    mod, params = relay.frontend.from_onnx(onnx_model())
    library = relay.build(mod, target="neuron/trn1", params=params)
    x = normal(64, 96)
    executor = library["default"](tvm.cpu())
    executor.run(x=x)
    scaled = np.abs(x.astype(np.float64)) * np.linspace(-2, 2, 64 * 96, dtype=np.float32).reshape(64, 96)
    check(executor.get_output(0).numpy(), scaled + scaled.sum(1, keepdims=True), FLOAT32)
    report = tvm_neuron.report(library)
    row = next(row for row in report.placement if row.name == "by_hand")
    assert (row.op, row.where) == ("scaled_and_its_sum", "neuroncore")
    (use,) = report.kernels
    assert (use.kernel, use.compiled_us) == ("scaled_and_its_sum", None)
    assert report.weight_bytes == 4 * 64 * 96  # the constant is a weight of the kernel's program, no input
    assert "weight" in report.dram_bytes_by_kind


def test_refusals() -> None:
    with pytest.raises(ModelError, match=r"no kernel 'Unheard' is registered; there are: .*nki.register"):
        relay.frontend.from_onnx(onnx_model(op="Unheard"))
    rows = tvm.tirx.Var("n", "int64")
    with pytest.raises(ModelError, match=r"operand 0 of kernel 'row_softmax_1' is .*; it must be a tensor of a static"):
        nki.call(row_softmax, relax.Var("x", relax.TensorType((rows, 4), "float32")))
    with pytest.raises(KernelError, match=r"has 256 partitions; trn1 has 128"):
        nki.call(row_softmax, relax.Var("x", relax.TensorType((256, 4), "float32")))
    with pytest.raises(KernelError, match="'same_twice' returns one tensor twice: a model needs a tensor for each"):
        tvm.compile(module((4, 8), lambda builder, x: nki.call(same_twice, x)), target="neuron/inf2")

    def of_constants(builder: relax.BlockBuilder, x: relax.Var) -> relax.Expr:
        weight = builder.emit(relax.op.exp(relax.const(np.ones((4, 8), np.float32))))
        scaled = builder.emit(nki.call(scaled_and_its_sum, x, weight))
        return relax.TupleGetItem(scaled, 0)

    with pytest.raises(ModelError, match=r"operand 1 of kernel 'scaled_and_its_sum' \(.*\) is computed from constants"):
        tvm.compile(module((4, 8), of_constants), target="neuron/inf2")


def test_another_kernel_of_the_same_name_is_another() -> None:
    def made(factor: float) -> nki.Kernel:
        @nki.jit
        def times(x):  # type: ignore[no-untyped-def]
            out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
            nl.store(out, value=nl.load(x) * factor)
            return out

        return times  # type: ignore[no-any-return]

    def body(builder: relax.BlockBuilder, x: relax.Var) -> relax.Expr:
        return nki.call(made(5.0), builder.emit(nki.call(made(3.0), x)))

    x = normal(4, 8)
    check(run(tvm.compile(module(x.shape, body), target="neuron/inf2"), x), 15 * x.astype(np.float64), FLOAT32)
    assert {"times", "times_1"} <= set(KERNELS)
