"""neuron-cc explain: the page of an error code: what it means, before and after.

Example:
  neuron-cc explain NCC101
"""

import argparse
import sys
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown

from tvm_neuron.errors import OptionError

NAME = "explain"
PAGES = Path(__file__).parent / "pages"


def codes() -> list[str]:
    """All codes that have a page."""
    return sorted(path.stem for path in PAGES.glob("NCC*.md"))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("code", nargs="?", metavar="NCC101", help="without it: all codes")


def run(options: argparse.Namespace) -> None:
    """Prints the page, or the list of codes with the pages' titles.

    Raises:
        OptionError: there is no such code.
    """
    if options.code is None:
        for code in codes():
            print((PAGES / f"{code}.md").read_text().splitlines()[0].removeprefix("# "))
        return
    path = PAGES / f"{options.code.upper()}.md"
    if path.stem not in codes():
        raise OptionError(f"there is no error code '{options.code}'; the codes are {', '.join(codes())}")
    text = path.read_text()
    if sys.stdout.isatty():
        Console().print(Markdown(text))
    else:
        print(text, end="")
