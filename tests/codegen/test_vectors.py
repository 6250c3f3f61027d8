"""Constants by channel: where they are many they come in turns, and every kernel still finds its own."""

import numpy as np
import pytest

from tests.codegen.transformers import Encoder
from tvm_neuron import neff, relay, runtime
from tvm_neuron.codegen import zones
from tvm_neuron.codegen.emit.stay_in_psum import STAY_IN_PSUM
from tvm_neuron.codegen.emit.vectors import Vectors
from tvm_neuron.codegen.steps import without
from tvm_neuron.relay import graph_executor


def _run(encoder: Encoder) -> tuple[np.ndarray, int]:
    """What it computes, and how many tables of vectors it loads."""
    mod, params = relay.frontend.from_onnx(encoder.model())
    library = relay.build(mod, target="neuron", params=params)
    executor = graph_executor.GraphModule(library["default"]())
    executor.run(**encoder.inputs())
    (data,) = runtime.neffs(library).values()
    tables = [tensor for tensor in neff.read(data).program.tensors if tensor.name.startswith("vectors")]
    return executor.get_output(0).numpy(), len(tables)


@pytest.mark.slow
def test_many_come_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """In two layers of an encoder; a program whose loads raced with readers would be refused."""
    encoder = Encoder(256, 4, 16, layers=2, batch=2)
    with without(STAY_IN_PSUM.name):  # in another order others stay there, which are then not rounded
        at_once, single = _run(encoder)
        monkeypatch.setattr(zones, "LEAST_COLUMNS", 1)
        in_turns, several = _run(encoder)
    assert single == 1
    assert several > 3
    np.testing.assert_array_equal(in_turns, at_once)


def test_columns_of_a_kernel_lie_in_one_table() -> None:
    values = np.arange(256, dtype=np.float32)
    vectors = Vectors(64, 3, in_turns=True, partitions=128)
    first = vectors.begin(2)
    assert first is not None
    assert vectors.find(values, 0) == 64
    assert vectors.begin(1) is None
    assert vectors.find(values, 0) == 64
    second = vectors.begin(2)
    assert second is not None
    assert vectors.find(values, 128) == 64 + (3 + 1) * 4
    np.testing.assert_array_equal(first[:, :2].T, values.reshape(2, 128))
    np.testing.assert_array_equal(second[:, :2].T, values.reshape(2, 128))
    assert vectors.begin(3) is not None
    assert vectors.table_at == 64


def test_kernels_cut_differently_share_columns() -> None:
    """One for each partition at which runs start: tiles of rows take a group of weights, or all of them."""
    values = np.arange(200, dtype=np.float32)
    vectors = Vectors(0, 4, in_turns=False, partitions=128)
    places = [vectors.find(values, start) for start in (0, 64, 128, 64)]
    assert places == [0, 8, 4, 8]
    np.testing.assert_array_equal(vectors.tables[0][:, 2], values[64:192])
    np.testing.assert_array_equal(vectors.tables[0][:8, 3], values[192:])
