"""--static-weights: what of the weights stays on a core between runs."""

import argparse
from typing import Any


def add_arguments(parser: argparse._ArgumentGroup) -> None:
    """The arguments about cores."""
    parser.add_argument(
        "--static-weights", action="store_true", help="weights stay in SBUF between runs; an error if they don't fit"
    )


def as_build_options(options: argparse.Namespace) -> dict[str, Any]:
    """The arguments as fields of BuildOptions."""
    return {"static_weights": options.static_weights}
