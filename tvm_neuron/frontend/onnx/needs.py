"""Operands whose values shape the result or unroll a loop: they must be known at compile time."""

from collections.abc import Mapping

import onnx

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.origin import Origin

_AXES = dict.fromkeys(
    ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum",
     "ReduceLogSumExp", "ReduceSumSquare", "Squeeze", "Unsqueeze"), (1,),
)  # fmt: skip

_POSITIONS: Mapping[str, tuple[int, ...]] = _AXES | {
    "AffineGrid": (1,), "BlackmanWindow": (0,), "CenterCropPad": (1,), "Col2Im": (1, 2), "ConstantOfShape": (0,),
    "CumProd": (1,), "CumSum": (1,), "DFT": (1, 2), "Dropout": (1, 2), "Expand": (1,), "HammingWindow": (0,),
    "HannWindow": (0,), "If": (), "Loop": (0, 1), "MaxUnpool": (2,), "MelWeightMatrix": (0, 1, 2, 3, 4),
    "OneHot": (1,), "Pad": (1, 3), "Range": (0, 1, 2), "Reshape": (1,),
    "Resize": (1, 2, 3), "STFT": (1, 3), "SequenceAt": (1,), "SequenceErase": (1,), "SequenceInsert": (2,),
    "Slice": (1, 2, 3, 4), "Split": (1,), "SplitToSequence": (1,), "Tile": (1,), "TopK": (1,), "Trilu": (1,),
    "Upsample": (1,),
}  # fmt: skip


class NeedsValueError(ModelError):
    """Values of inputs must be known at compile time; `inputs` names them."""

    code = "NCC102"

    def __init__(self, message: str, inputs: frozenset[str]) -> None:
        super().__init__(message)
        self.inputs = inputs


def value_operands(node: onnx.NodeProto) -> list[str]:
    """The names of the operands of `node` whose values it needs at compile time."""
    positions = _POSITIONS.get(node.op_type, ())
    return [node.input[at] for at in positions if at < len(node.input) and node.input[at]]


def needs_values(origin: Origin, operand: str, inputs: frozenset[str]) -> NeedsValueError:
    """The error for an operand that is computed from `inputs` of the model."""
    names = sorted(inputs)
    example = ", ".join(f"'{name}': ..." for name in names)
    given = ", ".join(f'"{name}": {{"value": ...}}' for name in names)
    return NeedsValueError(
        f"operator '{origin.name}' ({origin.op}) needs the value of '{operand}' at compile time, which comes from the "
        f"model's input{'s' if len(names) > 1 else ''} {', '.join(names)}; give it: values={{{example}}}, "
        f'or on the command line --io-config \'{{"inputs": {{{given}}}}}\'',
        inputs,
    )
