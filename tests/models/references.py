"""What a network gives on two random images: in float32, and with every tensor rounded to bfloat16."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import onnx

from tests.models.agreement import EPSILON, ROUNDS_ELSEWHERE, relative_error, run_exactly
from tests.models.rounding import emulate_bfloat16
from tvm_neuron.frontend.sample_models import light_network

MOST = 2  # images: a batch; four at once, and their parts that overlap, are tests/codegen's and tests/stages'
SHAPE = (3, 224, 224)


@dataclass(frozen=True)
class Reference:
    """A network, its images, and what onnxruntime makes of them."""

    model: onnx.ModelProto
    images: np.ndarray
    exact: np.ndarray  # float32
    rounded: np.ndarray

    @property
    def input(self) -> str:
        """The name of the network's one input."""
        return str(self.model.graph.input[0].name)

    def error(self, actual: np.ndarray) -> float:
        """Relative L2 error against float32 on the first images, as many as there are of `actual`."""
        wanted = self.exact[: len(actual)]
        return relative_error(actual.reshape(wanted.shape), wanted)

    def bound(self, batch: int) -> float:
        """The error that bf16 explains.

        Keeping weights and activations in bf16 costs what it costs onnxruntime when it rounds them at every operator.
        We round as often or less (a fused kernel rounds once), but at other places, and weights after batch norms were
        folded into them. So our errors are other draws of the same size, not the same errors: twice theirs. What is
        left for functions whose tables differ between libraries, and for sums in another order, is far below 1e-3.
        """
        return ROUNDS_ELSEWHERE * self.error(self.rounded[:batch]) + EPSILON


@lru_cache(maxsize=1)  # the tests are ordered by network
def reference(name: str) -> Reference:
    """The light network `name` with random weights."""
    model = light_network(name)
    images = np.random.default_rng([1, *name.encode()]).standard_normal((MOST, *SHAPE)).astype(np.float32)
    return Reference(model, images, _run(model, images), _run(emulate_bfloat16(model), images))


def _run(model: onnx.ModelProto, images: np.ndarray) -> np.ndarray:
    """One image after the other: the network's Reshapes hold the batch 1."""
    name = model.graph.input[0].name
    return np.concatenate([next(iter(run_exactly(model, {name: image[None]}).values())) for image in images])
