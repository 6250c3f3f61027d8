"""--on-cpu, --host-cpu: what stays on the CPU, and for which processors that is compiled."""

import argparse
from typing import Any

from tvm_neuron.runtime.host import LEVELS


def add_arguments(parser: argparse._ArgumentGroup) -> None:
    """The arguments about the CPU parts."""
    parser.add_argument(
        "--on-cpu", action="append", default=[], metavar="PATTERN",
        help="keep the operators whose names fit on the CPU: 'head/*'; may be given again",
    )  # fmt: skip
    parser.add_argument(
        "--host-cpu", default="baseline", metavar="LEVEL",
        help=f"instructions that CPU parts may use: {', '.join(LEVELS)}, or native, the highest this machine has; "
        "without it they run on every processor of this architecture, and use AVX2 where it is there",
    )  # fmt: skip


def as_build_options(options: argparse.Namespace) -> dict[str, Any]:
    """The arguments as fields of BuildOptions."""
    return {"on_cpu": tuple(options.on_cpu), "host_cpu": options.host_cpu}
