"""Puts measured text where it is published: into the block between two comments of a Markdown file."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def replace_block(file_name: str, block: str, text: str) -> None:
    """The lines between `<!-- block -->` and `<!-- /block -->` become `text`, as a code block."""
    path = ROOT / file_name
    lines = "\n".join(line.rstrip() for line in text.rstrip().splitlines())
    pattern = re.compile(rf"(<!-- {block} -->\n).*?(<!-- /{block} -->)", re.DOTALL)
    written, count = pattern.subn(lambda found: f"{found[1]}```text\n{lines}\n```\n{found[2]}", path.read_text())
    if count != 1:
        raise ValueError(f"{path} has {count} blocks '{block}', not one")
    path.write_text(written)
