"""--neuroncore-pipeline-cores, --instance, --static-weights: how many cores, and what stays on them between runs."""

import argparse
from typing import Any

from tvm_neuron.hw import instance_names


def add_arguments(parser: argparse._ArgumentGroup) -> None:
    """The arguments about cores."""
    parser.add_argument(
        "--neuroncore-pipeline-cores", "--num-neuroncores", type=int, default=1, metavar="N", dest="pipeline_cores",
        help="cut the model over N cores, which work on consecutive inputs (1); a first guess: N = 4 x weights / 2e7",
    )  # fmt: skip
    parser.add_argument(
        "--instance", default="", metavar="TYPE", help=f"whose links between chips count: {', '.join(instance_names())}"
    )
    parser.add_argument(
        "--static-weights", action="store_true", help="weights stay in SBUF between runs; an error if they don't fit"
    )


def as_build_options(options: argparse.Namespace) -> dict[str, Any]:
    """The arguments as fields of BuildOptions."""
    return {
        "pipeline_cores": options.pipeline_cores,
        "instance": options.instance,
        "static_weights": options.static_weights,
    }
