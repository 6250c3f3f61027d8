"""Short elementwise kernels run half on ACT and half on POOL, with the same numbers as on one of them."""

import pytest
from onnx import helper

from tests.models.agreement import Case, random_inputs, relative_error
from tests.onnx_models import make_model
from tests.stages.networks import compile_model, run


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
@pytest.mark.parametrize(
    ("shape", "ends"),
    [
        ((1, 1000), [helper.make_node("Softmax", ["s"], ["y"])]),
        ((1, 1152, 7, 7), [helper.make_node(op, x, y) for op, x, y in [
            ("GlobalAveragePool", ["s"], ["p"]), ("Sigmoid", ["p"], ["q"]), ("Mul", ["s", "q"], ["y"]),
        ]]),
    ],
    ids=["rows", "channels"],
)  # fmt: skip
def test_both_engines_scale(shape: tuple[int, ...], ends: list[object], chip: str) -> None:
    model = make_model([helper.make_node("Tanh", ["x"], ["s"]), *ends], {"x": shape}, ["y"], {})
    case = Case(model, random_inputs(model))
    compiled = compile_model(model, f"neuron/{chip}")
    last = {part.engine for _, part in compiled.program.instructions() if _scales(part.mnemonic, part)}
    assert last == {"act", "pool"}
    found = run(compiled, case.inputs, "strict")["y"]
    assert relative_error(found, case.exact["y"]) < case.bounds["y"]


def _scales(mnemonic: str, part: object) -> bool:
    scale = getattr(part, "scale", None)
    return mnemonic in ("tensor_scalar", "act_tensor_scalar") or (mnemonic == "activation" and hasattr(scale, "space"))
