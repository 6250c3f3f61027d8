"""What a script's result is compared with after its end, where the script does not compare it itself."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Values = dict[str, Any]
"""The script's variables."""


@dataclass(frozen=True)
class Check:
    """`compare` gives the result and what it should be; no more than `bound` may lie between them (relative L2)."""

    reference: str
    compare: Callable[[Values], tuple[np.ndarray, np.ndarray]] | None = None
    bound: float = 0.03

    def error(self, values: Values) -> str:
        """The relative error as text.

        Raises AssertionError: it is greater than the bound.
        """
        if self.compare is None:
            return "as it allows" if "assertions" in self.reference else ""
        result, expected = (np.asarray(each, "float64") for each in self.compare(values))
        if result.shape != expected.shape:
            raise AssertionError(f"the result is {result.shape}, {self.reference} gives {expected.shape}")
        error = float(np.linalg.norm(result - expected) / np.linalg.norm(expected))
        if not error <= self.bound:
            raise AssertionError(f"{error:.2%} from what {self.reference} gives; {self.bound:.0%} are allowed")
        return f"{error:.2%}"


def _onnxruntime(model: Any, inputs: dict[str, np.ndarray]) -> np.ndarray:
    import onnxruntime

    return onnxruntime.InferenceSession(model.SerializeToString()).run(None, inputs)[0]


def _relay_in_float32(values: Values) -> tuple[np.ndarray, np.ndarray]:
    from tvm_neuron.relay.lower import to_relax

    return values["out"], by_tvm(to_relax(values["mod"]), {"data": values["data"]}, values["params"])


def _external_lib(values: Values) -> tuple[np.ndarray, np.ndarray]:
    from tvm_neuron.relay.lower import to_relax

    return values["out_cudnn"], by_tvm(to_relax(values["net"]), {"data": values["data"]}, values["params"])


def by_tvm(mod: Any, inputs: dict[str, np.ndarray], params: dict[str, Any]) -> np.ndarray:
    """The network by TVM's own kernels on the CPU in float32."""
    import tvm
    from tvm import relax

    given = inputs | {name: value.numpy() for name, value in params.items()}
    machine = relax.VirtualMachine(tvm.compile(mod, target="llvm"), tvm.cpu())
    return machine["main"](*(tvm.runtime.tensor(given[var.name]) for var in mod["main"].params)).numpy()


def _from_onnx(values: Values) -> tuple[np.ndarray, np.ndarray]:
    return values["tvm_output"], _onnxruntime(values["onnx_model"], {"1": values["x"].astype("float32")})


def _from_tflite(values: Values) -> tuple[np.ndarray, np.ndarray]:
    return values["tvm_output"], interpreted(values["tflite_model_buf"], values["image_data"])


def interpreted(model: bytes, data: np.ndarray) -> np.ndarray:
    """What TFLite's interpreter makes of an input."""
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_content=model)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], data)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def _from_coreml(values: Values) -> tuple[np.ndarray, np.ndarray]:
    from benchmarks.gallery.coreml_models import by_torch

    return values["tvm_output"].numpy(), by_torch(values["x"].astype("float32"))


def _tvmc_command_line(values: Values) -> tuple[np.ndarray, np.ndarray]:
    import onnx

    image = values["img_data"].astype("float32")
    return np.load("predictions.npz")["output_0"], _onnxruntime(onnx.load("resnet50-v2-7.onnx"), {"data": image})


def _tvmc_python(values: Values) -> tuple[np.ndarray, np.ndarray]:
    import onnx
    from tvm.driver import tvmc

    image = np.random.default_rng(0).standard_normal((1, 3, 224, 224)).astype("float32")
    result = tvmc.run(values["new_package"], "cpu", inputs={"data": image})
    return result.outputs["output_0"], _onnxruntime(onnx.load("my_model.onnx"), {"data": image})


def _linear_layers(values: Values) -> tuple[np.ndarray, np.ndarray]:
    data, first, bias, second = (each.numpy().astype("float64") for each in (values["data"], *values["gpu_params"]))
    return values["gpu_out"], np.maximum(data @ first.T + bias, 0) @ second.T


def _resnet18(values: Values) -> tuple[np.ndarray, np.ndarray]:
    import torch

    with torch.no_grad():
        return values["gpu_out"], values["torch_model"](torch.from_numpy(values["gpu_data"].numpy())).numpy()


_SAME_OBJECTS = 0.9


def _detections(values: Values) -> tuple[np.ndarray, np.ndarray]:
    """Boxes, in widths of the image, scores and masks of what torch detects, and of the nearest of what was found.

    Of two boxes that overlap as much as is allowed rounding chooses one, so that some objects may be others:
    of a hundred, onnxruntime has two that torch hasn't.
    """
    import torch

    with torch.no_grad():
        boxes, scores, labels, masks = (each.numpy() for each in values["model"](torch.from_numpy(values["img"])))
    found = [each.numpy() for each in values["tvm_res"]]
    if not len(scores) or len(scores) != len(found[1]):
        raise AssertionError(f"{len(found[1])} objects are found, {len(scores)} by torch")
    apart = np.abs(boxes[:, None] - found[0]).sum(-1) + values["in_size"] * (labels[:, None] != found[2])
    nearest, is_same = apart.argmin(1), apart.min(1) < 1  # pixel, of all four coordinates
    if is_same.mean() < _SAME_OBJECTS:
        raise AssertionError(f"{is_same.sum()} of {len(scores)} objects are found as torch has them")
    nearest = nearest[is_same]
    sides = (
        (found[0][nearest], found[1][nearest], found[3][nearest]),
        (boxes[is_same], scores[is_same], masks[is_same]),
    )
    result, expected = (
        np.concatenate([b / values["in_size"], s[:, None], m.reshape(len(m), -1)], 1) for b, s, m in sides
    )
    return result, expected


def _relay_of_prequantized(values: Values) -> tuple[np.ndarray, np.ndarray]:
    return values["tvm_result"], values["pt_result"]


def _quantised_tflite(values: Values) -> tuple[np.ndarray, np.ndarray]:
    return values["rt_mod"].get_output(0).numpy(), interpreted(values["tflite_model_buf"], values["data"])


CHECKS: dict[str, Check] = {
    "relay_quick_start": Check("TVM's kernels in float32", _relay_in_float32),
    "tvmc_python": Check("onnxruntime", _tvmc_python),
    "tvmc_command_line_driver": Check("onnxruntime", _tvmc_command_line),
    "from_onnx": Check("onnxruntime", _from_onnx),
    "from_pytorch": Check("torch", lambda v: (v["tvm_output"].numpy(), v["output"].numpy())),
    "from_coreml": Check("torch", _from_coreml),
    "from_keras": Check("Keras", lambda v: (v["tvm_out"].numpy(), v["keras_out"])),
    "from_tflite": Check("LiteRT", _from_tflite),
    "deploy_object_detection_pytorch": Check("torch", _detections),
    # results are whole steps of a scale, of which a few come out one beside
    "deploy_prequantized": Check("torch", _relay_of_prequantized, bound=0.1),
    "deploy_prequantized_tflite": Check("LiteRT", _quantised_tflite, bound=0.1),
    "customize_opt": Check("NumPy in float64", _linear_layers),
    "e2e_opt_model": Check("torch", _resnet18),
    "using_external_lib": Check("TVM's kernels in float32", _external_lib),
}

PRECISE = (
    "build_gcn", "deploy_object_detection_pytorch", "import_model", "using_as_torch", "using_optimized_torch",
)  # fmt: skip
"""Scripts that compare with float32 to five digits, or choose by scores: products are asked for in float32."""
