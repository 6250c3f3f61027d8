"""What the tests read in Markdown files: code blocks and links."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILES = (
    "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "BENCHMARKS.md", "docs/bound.md", "docs/catalogue.md",
    "docs/cli.md",
    "docs/deploy.md", "docs/gallery.md", "docs/isa.md", "docs/jax.md", "docs/mxnet.md",
    "docs/neff.md", "docs/networks.md", "docs/nki.md", "docs/operators.md", "docs/pipeline.md",
    "docs/placement.md", "docs/precision.md", "docs/pytorch.md", "docs/relay.md", "docs/reports.md",
    "docs/tensorflow.md", "docs/serve.md",
    "docs/sweep.md",
)  # fmt: skip
_BLOCK = re.compile(r"(?:^<!-- (?:test: )?([\w/]+) -->\n)?^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """A code block: the comment above it ("" if there is none), its language, its text."""

    mark: str
    language: str
    text: str


def blocks(file_name: str) -> list[Block]:
    """All code blocks of a file, in order."""
    found = _BLOCK.findall((ROOT / file_name).read_text())
    return [Block(mark, language, text) for mark, language, text in found]


def links(file_name: str) -> Iterator[str]:
    """The targets of all links of a file, in whose code a call may look like one."""
    yield from _LINK.findall(_BLOCK.sub("", (ROOT / file_name).read_text()))


def shell_lines(block: Block) -> list[str]:
    """The commands of a block, without comments."""
    return [line.partition("  #")[0].partition(" # ")[0].strip() for line in block.text.splitlines() if line.strip()]
