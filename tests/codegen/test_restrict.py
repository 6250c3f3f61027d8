"""Parts of kernels: what stays of their axes."""

from tvm_neuron.codegen.tiles.restrict import restrict
from tvm_neuron.program import Origin
from tvm_neuron.schedule.expr import Axis
from tvm_neuron.schedule.kernel import ROOT, Kernel, Operand, Transposition
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor


def test_a_transposition_keeps_its_row_though_there_is_only_one() -> None:
    """Its instructions run over that axis."""
    row, channel, other = Axis("row", 1), Axis("channel", 24), Axis("other", 6)
    source, out = Tensor("source", (1, 6, 24), "float32"), Tensor("out", (24, 6), "float32")
    maps = (Linear(0, {channel: 1}), Linear(0, {other: 1}))
    root = Transposition(Operand(source, (Linear(), Linear(0, {other: 1}), Linear(0, {channel: 1}))), row)
    kernel = Kernel((Origin("move", "Transpose"),), out, maps, channel, (row, other), ROOT, root)
    assert restrict(kernel, other, 2, 3, {}).free == (row,)
    first = restrict(kernel, row, 0, 1, {})
    assert isinstance(first.root, Transposition)
    assert [first.root.row, other] == list(first.free)
