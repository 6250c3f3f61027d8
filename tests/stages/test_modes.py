"""A program gives the same bits one instruction at a time, a whole nest at once, and with its engines out of step."""

import numpy as np
import pytest

from tests.onnx_models import reference
from tests.stages.networks import compile_model, images, run, small_network


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("chip", ["inf1", "inf2"])
def test_the_same_bits_in_every_mode(chip: str, batch: int) -> None:
    model = small_network(batch)
    compiled = compile_model(model, f"neuron/{chip}")
    whole = run(compiled, images(batch))["y"]
    (wanted,) = reference(model, images(batch))
    # Five matrix products in a row round their operands to bfloat16 (half a unit of 2**-8 each, which adds up like
    # independent errors do: 2**-9 * sqrt(2 * 5) = 0.6 %) before a softmax, whose outputs have the logits' absolute
    # errors as relative ones; the logits are about 2.
    np.testing.assert_allclose(whole, wanted, rtol=0.05, atol=1e-3)
    assert run(compiled, images(batch), "step")["y"].tobytes() == whole.tobytes()
    for seed in range(3):
        assert run(compiled, images(batch), "strict", seed)["y"].tobytes() == whole.tobytes()
