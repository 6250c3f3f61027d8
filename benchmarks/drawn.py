"""What scripts that draw their cases by seed are asked: how many, which, on which chip."""

import argparse

CHIPS = ("inf1", "inf2")


def asked(name: str, about: str | None) -> argparse.Namespace:
    """`sample`, `seed` and `chip` of the command line of `python -m benchmarks.NAME`."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=about)
    parser.add_argument("--sample", type=int, default=30, metavar="N", help="how many: %(default)s")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--chip", choices=CHIPS, default="inf2")
    return parser.parse_args()
