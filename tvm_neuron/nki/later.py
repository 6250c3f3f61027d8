"""Names of the language that the model has not: kernels may import and mention them, and are told when they use one."""

from collections.abc import Callable
from typing import Any, NoReturn

from tvm_neuron.nki.source import wrong

# Calls of nki.isa, and why the model has none. Trn1 and Inf2 have NeuronCore-v2, Trn2 has -v3, Trn3 -v4.
CALLS = {
    **dict.fromkeys(
        ("activate2", "exponential", "nc_matmul_mx", "nonzero_with_count", "quantize_mx", "rand2"),
        "it is of NeuronCore-v4 (Trn3); the model has v2 and v3",
    ),
    "sendrecv": "it is between two cores (NeuronCore-v3 and later); those of the model don't wait for each other",
    **dict.fromkeys(("dropout", "rng", "set_rng_seed"), "its random numbers are unpublished"),
    **dict.fromkeys(
        ("register_alloc", "register_load", "register_move", "register_store"),
        "programs of the model have no values in registers: what a kernel computes with is known when it is traced",
    ),
    **dict.fromkeys(
        ("nc_n_gather", "dma_compute", "sequence_bounds", "tensor_scalar_cumulative"),
        "the model lacks this instruction",
    ),
}
# Of nki.collectives.
COLLECTIVES = (
    "all_gather", "all_reduce", "all_to_all", "collective_permute", "collective_permute_implicit",
    "collective_permute_implicit_current_processing_rank_id", "collective_permute_implicit_reduce", "rank_id",
    "reduce_scatter",
)  # fmt: skip
BETWEEN_CHIPS = "it is between cores or chips; those of the model don't wait for each other"
DTYPES = ("float8_e4m3fn_x4", "float8_e5m2_x4", "float4_e2m1fn_x4", "tfloat32")


def refusing(name: str, why: str) -> Callable[..., NoReturn]:
    """A call that is refused."""

    def call(*_: Any, **__: Any) -> NoReturn:
        raise wrong(f"{name} does not run: {why}")

    call.__name__, call.__doc__ = name, f"Refused: {why}."
    return call
