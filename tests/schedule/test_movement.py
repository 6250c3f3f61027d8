"""Constants that no engine can write are moved from a table in DRAM, in rows rather than element by element."""

import numpy as np
import pytest

from tvm_neuron.hw import load_device
from tvm_neuron.program import Origin
from tvm_neuron.schedule.expr import Apply, Axis, Expr, Index, Load, Num
from tvm_neuron.schedule.graph import Block
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.rule import Context, apply_rules, load_rules
from tvm_neuron.schedule.tensor import Tensor

CHANNEL, ROW, SHORT = Axis("channel", 4), Axis("row", 100), Axis("short", 3)


def _kernel(value: Expr) -> Kernel:
    """A fill of channels from 65 on, where no engine begins to write."""
    out = Tensor("y", (72, 100, 3), "float32")
    index = (Apply("add", (Index(CHANNEL), Num(65))), Index(ROW), Index(SHORT))
    block = Block(Origin("y", "Pad"), (CHANNEL, ROW, SHORT), out, index, value)
    return apply_rules(block, load_rules(), Context(load_device("inf2"), {out: 0}))


@pytest.mark.parametrize(
    ("value", "shape", "wanted"),
    [
        (Num(7), (100, 3), 7),
        (Index(CHANNEL), (4, 100, 3), np.arange(4)[:, None, None]),
        (Index(SHORT), (100, 3), np.arange(3)),
        (Index(ROW), (100, 3), np.arange(100)[:, None]),
    ],
)
def test_a_row_of_what_is_moved_lies_in_one_piece(value: Expr, shape: tuple[int, ...], wanted: np.ndarray) -> None:
    kernel = _kernel(value)
    assert kernel.by_dma
    assert isinstance(kernel.expr, Load)
    table = kernel.expr.tensor
    assert table.shape == shape
    assert kernel.expr.indices[-2:] == (Index(ROW), Index(SHORT))
    assert table.value is not None
    np.testing.assert_array_equal(table.value, np.broadcast_to(wanted, shape))
