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
            return "as the script allows"
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


CHECKS: dict[str, Check] = {
    "relay_quick_start": Check("TVM's kernels in float32", _relay_in_float32),
    "from_onnx": Check("onnxruntime", _from_onnx),
    "from_pytorch": Check("torch", lambda v: (v["tvm_output"].numpy(), v["output"].numpy())),
    "from_tflite": Check("LiteRT", _from_tflite),
    "using_external_lib": Check("TVM's kernels in float32", _external_lib),
}
