"""Models whose sizes only a run tells run in stages: each gives what onnxruntime gives, for many boxes and none."""

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import tvm
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from tvm_neuron import relay
from tvm_neuron.build import BuildOptions, build_options
from tvm_neuron.errors import InputError, ModelError
from tvm_neuron.frontend import from_onnx
from tvm_neuron.frontend.onnx.stages import Stages

RNG = np.random.default_rng(25)
Arrays = dict[str, NDArray[Any]]


def model_of(nodes: list[onnx.NodeProto], inputs: dict[str, tuple[int, ...]], outputs: str, constants: Arrays) -> Any:
    """A model with inputs of float32; the outputs' names are letters."""
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info(name, 1, shape) for name, shape in inputs.items()],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def machine(model: onnx.ModelProto) -> Any:
    """A virtual machine that computes it in float32."""
    mod, params = relay.frontend.from_onnx(model)
    executable = relay.vm.compile(mod, target="neuron", params=params)
    return tvm.runtime.vm.VirtualMachine(executable, tvm.cpu())


def check(model: onnx.ModelProto, calls: list[Arrays]) -> None:
    """One machine for all calls."""
    session = onnxruntime.InferenceSession(model.SerializeToString())
    with build_options(BuildOptions(fp32_cast="none", device="neuron/inf2")):
        vm = machine(model)
        for inputs in calls:
            found = vm.run(**inputs)
            expected = session.run(None, inputs)
            for one, other in zip(found if len(expected) > 1 else [found], expected, strict=True):
                assert one.numpy().shape == other.shape
                assert one.numpy().dtype == other.dtype
                np.testing.assert_allclose(one.numpy(), other, rtol=1e-4, atol=1e-4)


def detector() -> onnx.ModelProto:
    """The second half of a detector: boxes with a score, those that stay, their features, a mask of each one's size."""
    constants = {
        "least": np.float32(0.3), "most": np.array([4]), "overlap": np.float32([0.3]), "nothing": np.array(0),
        "zero": np.array([0]), "one": np.array([1]), "two": np.array([2]), "four": np.array([4]), "yes": np.array(True),
        "corners": np.array([0, 1]), "ones": np.array([1, 1]), "none": np.array([0, 0]), "side": np.array([6, 6]),
        "weight": RNG.standard_normal((2 * 3 * 3, 5)).astype(np.float32), "flat": np.array([-1, 18]),
        "empty": np.zeros((0,), np.int64), "start": np.zeros((0, 6, 6), np.float32),
    }  # fmt: skip
    suppress = helper.make_graph(
        [
            helper.make_node("Unsqueeze", ["boxes", "zero"], ["a_batch"]),
            helper.make_node("Unsqueeze", ["scores", "corners"], ["a_class"]),
            helper.make_node("NonMaxSuppression", ["a_batch", "a_class", "most", "overlap"], ["rows"]),
            helper.make_node("Gather", ["rows", "two"], ["column"], axis=1),
            helper.make_node("Squeeze", ["column", "one"], ["kept"]),
        ], "suppress", [], [helper.make_tensor_value_info("kept", TensorProto.INT64, [None])],
    )  # fmt: skip
    nothing = helper.make_graph(
        [helper.make_node("Identity", ["empty"], ["no_box"])], "nothing", [],
        [helper.make_tensor_value_info("no_box", TensorProto.INT64, [None])],
    )  # fmt: skip
    paste = helper.make_graph(
        [
            helper.make_node("Identity", ["condition"], ["goes_on"]),
            helper.make_node("Gather", ["pixels", "at"], ["box"]),
            helper.make_node("Slice", ["box", "two", "four"], ["ends"]),
            helper.make_node("Slice", ["box", "zero", "two"], ["begins"]),
            helper.make_node("Sub", ["ends", "begins"], ["size"]),
            helper.make_node("Gather", ["masks", "at"], ["mask"]),
            helper.make_node("Unsqueeze", ["mask", "corners"], ["image"]),
            helper.make_node("Concat", ["ones", "size"], ["sizes"], axis=0),
            helper.make_node("Resize", ["image", "", "", "sizes"], ["resized"], mode="linear"),
            helper.make_node("Sub", ["side", "ends"], ["behind"]),
            helper.make_node("Concat", ["none", "begins", "none", "behind"], ["widths"], axis=0),
            helper.make_node("Pad", ["resized", "widths"], ["whole"]),
            helper.make_node("Squeeze", ["whole", "zero"], ["pasted"]),
            helper.make_node("Concat", ["carried", "pasted"], ["more"], axis=0),
        ], "paste",
        [helper.make_tensor_value_info("at", TensorProto.INT64, []),
         helper.make_tensor_value_info("condition", TensorProto.BOOL, []),
         helper.make_tensor_value_info("carried", TensorProto.FLOAT, [None, 6, 6])],
        [helper.make_tensor_value_info("goes_on", TensorProto.BOOL, []),
         helper.make_tensor_value_info("more", TensorProto.FLOAT, [None, 6, 6])],
    )  # fmt: skip
    nodes = [
        helper.make_node("Relu", ["image_features"], ["features"]),
        helper.make_node("Greater", ["all_scores", "least"], ["is_good"]),
        helper.make_node("NonZero", ["is_good"], ["places"]),
        helper.make_node("Squeeze", ["places", "zero"], ["good"]),
        helper.make_node("Gather", ["all_boxes", "good"], ["boxes"]),
        helper.make_node("Gather", ["all_scores", "good"], ["scores"]),
        helper.make_node("Size", ["scores"], ["count"]),
        helper.make_node("Equal", ["count", "nothing"], ["is_none"]),
        helper.make_node("If", ["is_none"], ["chosen"], then_branch=nothing, else_branch=suppress),
        helper.make_node("Gather", ["boxes", "chosen"], ["b"]),
        helper.make_node("Gather", ["scores", "chosen"], ["s"]),
        helper.make_node("Shape", ["b"], ["shape"]),
        helper.make_node("Gather", ["shape", "nothing"], ["number"]),
        helper.make_node("Unsqueeze", ["number", "zero"], ["numbers"]),
        helper.make_node("ConstantOfShape", ["numbers"], ["image_of"], value=numpy_helper.from_array(np.array([0]))),
        helper.make_node("RoiAlign", ["features", "b", "image_of"], ["parts"], output_height=3, output_width=3),
        helper.make_node("Reshape", ["parts", "flat"], ["rows_of_parts"]),
        helper.make_node("MatMul", ["rows_of_parts", "weight"], ["f"]),
        helper.make_node("ReduceMean", ["parts", "one"], ["masks"], keepdims=0),
        helper.make_node("Cast", ["b"], ["pixels"], to=TensorProto.INT64),
        helper.make_node("Loop", ["number", "yes", "start"], ["m"], body=paste),
    ]
    return model_of(nodes, {"image_features": (1, 2, 6, 6), "all_boxes": (7, 4), "all_scores": (7,)}, "bsfm", constants)


def boxes() -> Arrays:
    """Seven boxes of whole corners inside 6 by 6 pixels."""
    begin = RNG.integers(0, 4, (7, 2))
    return {
        "image_features": RNG.standard_normal((1, 2, 6, 6)).astype(np.float32),
        "all_boxes": np.concatenate([begin, begin + RNG.integers(1, 3, (7, 2))], 1).astype(np.float32),
    }


@pytest.mark.slow
def test_a_detector_for_few_boxes_many_and_none() -> None:
    scores = RNG.permutation(np.linspace(0.35, 0.95, 7)).astype(np.float32)  # no two are equal
    few = np.where(np.arange(7) == 4, scores, 0).astype(np.float32)
    check(detector(), [boxes() | {"all_scores": each} for each in (scores, few, 0 * scores, scores[::-1].copy())])


def test_what_was_compiled_runs_again_for_the_same_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [
        helper.make_node("NonZero", ["x"], ["places"]),
        helper.make_node("Shape", ["places"], ["shape"]),
        helper.make_node("Concat", ["shape", "shape"], ["widths"], axis=0),
        helper.make_node("Pad", ["x", "widths"], ["y"]),
    ]
    model = model_of(nodes, {"x": (2, 3)}, "y", {})
    vm = machine(model)
    x = np.float32([[1, 0, 2], [0, 0, 0]])
    first = vm.run(x=x).numpy()
    monkeypatch.setattr("tvm_neuron.relay.build_module.build", None)  # what would compile
    np.testing.assert_array_equal(vm.run(x=3 * x).numpy(), 3 * first)
    assert first.shape == (6, 7)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    np.testing.assert_array_equal(first, session.run(None, {"x": x})[0])


def test_iterations_as_many_as_data_tell() -> None:
    body = helper.make_graph(
        [
            helper.make_node("Add", ["carried", "x"], ["sum"]),
            helper.make_node("Less", ["at", "limit"], ["goes_on"]),
        ], "body",
        [helper.make_tensor_value_info("at", TensorProto.INT64, []),
         helper.make_tensor_value_info("condition", TensorProto.BOOL, []),
         helper.make_tensor_value_info("carried", TensorProto.FLOAT, [2, 3])],
        [helper.make_tensor_value_info("goes_on", TensorProto.BOOL, []),
         helper.make_tensor_value_info("sum", TensorProto.FLOAT, [2, 3])],
    )  # fmt: skip
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["total"], keepdims=0),
        helper.make_node("Cast", ["total"], ["trips"], to=TensorProto.INT64),
        helper.make_node("Loop", ["trips", "yes", "x"], ["y"], body=body),
    ]
    model = model_of(nodes, {"x": (2, 3)}, "y", {"yes": np.array(True), "limit": np.array(3)})
    check(model, [{"x": np.full((2, 3), value, np.float32)} for value in (0.5, 0.0, 2.0)])


def test_one_library_is_refused() -> None:
    mod, params = relay.frontend.from_onnx(detector())
    with pytest.raises(ModelError, match=r"number of boxes .* relay\.vm\.compile .* in stages"):
        relay.build(mod, target="neuron", params=params)


def test_a_sequence_does_not_last_from_one_stage_to_the_next() -> None:
    nodes = [
        helper.make_node("SequenceConstruct", ["x", "x"], ["both"]),
        helper.make_node("NonZero", ["x"], ["places"]),
        helper.make_node("Shape", ["places"], ["shape"]),
        helper.make_node("Gather", ["shape", "one"], ["count"]),
        helper.make_node("Min", ["count", "one"], ["at"]),
        helper.make_node("SequenceAt", ["both", "at"], ["y"]),
    ]
    stages = Stages(model_of(nodes, {"x": (2, 3)}, "y", {"one": np.array(1)}), {}, "float32", None, {})
    with pytest.raises(ModelError, match="'both' is no tensor, and what is made of it waits for sizes"):
        stages.first()


def test_operators_of_later_stages_are_checked_at_import() -> None:
    nodes = [
        helper.make_node("NonZero", ["x"], ["places"]),
        helper.make_node("Concat", ["places", "x"], ["y"], axis=0),
    ]
    with pytest.raises(ModelError, match="don't fit together"):
        Stages(model_of(nodes, {"x": (2, 3)}, "y", {}), {}, "float32", None, {})


def test_a_report_of_all_stages() -> None:
    """A product before sizes are known, and one of columns that it tells."""
    nodes = [
        helper.make_node("MatMul", ["x", "before"], ["scores"], name="first"),
        helper.make_node("Greater", ["scores", "zero"], ["is_good"]),
        helper.make_node("NonZero", ["is_good"], ["places"]),
        helper.make_node("Shape", ["places"], ["sizes"]),
        helper.make_node("Concat", ["sizes", "sizes"], ["widths"], axis=0),
        helper.make_node("Pad", ["x", "widths"], ["wide"]),
        helper.make_node("MatMul", ["after", "wide"], ["y"], name="second"),
    ]
    constants = {"before": RNG.standard_normal((3, 5)), "after": RNG.standard_normal((7, 16)), "zero": np.zeros(())}
    model = model_of(nodes, {"x": (12, 3)}, "y", {name: each.astype(np.float32) for name, each in constants.items()})
    vm = machine(model)
    with pytest.raises(InputError, match="no report before the first call"):
        _ = vm.report
    with build_options(BuildOptions(fp32_cast="none", device="neuron/inf2")):
        vm.run(x=RNG.standard_normal((12, 3)).astype(np.float32))
    assert vm.report.macs == 12 * 3 * 5 + 7 * 12 * 3  # none for the zeros around
    assert {row.name for row in vm.report.placed("neuroncore")} >= {"first", "second"}
    assert "NonZero" in {row.op for row in vm.report.placed("cpu")}
    assert vm.report.latency_us == pytest.approx(sum(each.latency_us for each in vm.report.subgraphs))
    assert vm.report.bound_us <= vm.report.latency_us


def test_stages_that_did_not_run_have_no_report() -> None:
    nodes = [
        helper.make_node("NonZero", ["x"], ["places"]), helper.make_node("Shape", ["places"], ["shape"]),
        helper.make_node("Concat", ["shape", "shape"], ["widths"], axis=0),
        helper.make_node("Pad", ["x", "widths"], ["y"]),
    ]  # fmt: skip
    mod, _ = relay.frontend.from_onnx(model_of(nodes, {"x": (2, 3)}, "y", {}))
    run = relay.create_executor("vm", mod, tvm.cpu(), "neuron").evaluate()
    run.loaded({"x": np.ones((2, 3), np.float32)})
    with pytest.raises(InputError, match="no report before the first run"):
        _ = run.report


def test_a_report_of_a_machine_whose_sizes_are_known() -> None:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")]
    mod, params = relay.frontend.from_onnx(model_of(nodes, {"x": (4, 3)}, "y", {"w": np.ones((3, 5), np.float32)}))
    vm = tvm.runtime.vm.VirtualMachine(relay.vm.compile(mod, "neuron", params=params), tvm.cpu())
    assert vm.report.macs == 4 * 3 * 5


@pytest.mark.slow
def test_inputs_and_outputs_of_the_executor() -> None:
    mod, _ = relay.frontend.from_onnx(detector())
    run = relay.create_executor("vm", mod, tvm.cpu(), "neuron").evaluate()
    given = boxes() | {"all_scores": np.linspace(0, 1, 7).astype(np.float32)}
    assert len(run(**given)) == 4
    executor, _ = run.loaded(given)
    assert executor.get_input_index("all_boxes") == 1
    assert executor.get_input_index("boxes") == -1
    np.testing.assert_array_equal(executor.get_input("all_boxes").numpy(), given["all_boxes"])
    with pytest.raises(InputError, match=r"'all_scores' has shape \(6,\); the model takes \(7,\)"):
        executor.set_input("all_scores", np.zeros(6, np.float32))


@pytest.mark.parametrize(
    ("op", "dtype"),
    [
        *((f"Reduce{kind}", np.float32) for kind in ("Sum", "Mean", "Max", "L1", "L2", "LogSumExp", "SumSquare")),
        ("ReduceL2", np.int32), ("ReduceMean", np.int32), ("ReduceMax", np.bool_), ("ReduceMin", np.bool_),
    ],
)  # fmt: skip
def test_axes_that_are_computed(op: str, dtype: Any) -> None:
    """They were taken for left out by some reductions, which then went over all axes."""
    onnx_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    nodes = [
        helper.make_node("ReduceMax", ["v"], ["largest"], keepdims=0),
        helper.make_node("Cast", ["largest"], ["axis"], to=TensorProto.INT64),
        helper.make_node("Reshape", ["axis", "list"], ["axes"]),
        helper.make_node("Cast", ["x"], ["data"], to=onnx_type),
        helper.make_node(op, ["data", "axes"], ["found"], name="look"),
        helper.make_node("Cast", ["found"], ["y"], to=1),
    ]
    model = model_of(nodes, {"x": (3, 4), "v": (2, 2)}, "y", {"list": np.array([1])})
    model.opset_import[0].version = 20
    with pytest.raises(ModelError, match=r"'look' .* axes"):
        from_onnx(model)
    x = RNG.integers(0, 2, (3, 4)).astype(np.float32)
    check(model, [{"x": x, "v": np.full((2, 2), axis, np.float32)} for axis in (0.5, 1.0)])
