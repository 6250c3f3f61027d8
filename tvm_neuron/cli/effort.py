"""How much time a compile may take: the original's levels, and a budget."""

import argparse
from typing import Any

from tvm_neuron.codegen.options import LEVELS


def add_arguments(parser: argparse._ActionsContainer) -> None:
    """The arguments about the time that compiling takes."""
    parser.add_argument(
        "-O",
        "--optlevel",
        type=int,
        choices=LEVELS,
        default=2,
        help="-O1: no trial compiles; -O2 (default): parts beside CPU operators are weighed; -O3: several programs are "
        "made, and the quickest by the cost model is taken",
    )
    parser.add_argument("--O2", action="store_const", const=2, dest="optlevel", help=argparse.SUPPRESS)
    parser.add_argument(
        "--time-budget", type=float, metavar="SECONDS", help="try nothing more when so many seconds have passed"
    )
    parser.add_argument(
        "--processes",
        type=int,
        metavar="N",
        help="make the programs of -O3 in so many processes of Ray at once; 1: in this one. Without it in one for each "
        "core, where Ray is installed and a program takes long",
    )


def as_build_options(options: argparse.Namespace) -> dict[str, Any]:
    """The arguments as fields of BuildOptions."""
    return {
        "optlevel": options.optlevel,
        "time_budget_seconds": options.time_budget,
        "processes": options.processes,
    }
