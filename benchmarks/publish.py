"""Puts measured text where it is published: into the block between two comments of a Markdown file."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def replace_block(file_name: str, block: str, text: str) -> None:
    """The lines between `<!-- block -->` and `<!-- /block -->` become `text`, as a code block."""
    lines = "\n".join(line.rstrip() for line in text.rstrip().splitlines())
    _replace(file_name, block, f"```text\n{lines}\n```")


def replace_table(file_name: str, block: str, table: str) -> None:
    """The same with a Markdown table."""
    _replace(file_name, block, f"\n{table}\n")


def _replace(file_name: str, block: str, text: str) -> None:
    path = ROOT / file_name
    pattern = re.compile(rf"(<!-- {block} -->\n).*?(<!-- /{block} -->)", re.DOTALL)
    written, count = pattern.subn(lambda found: f"{found[1]}{text}\n{found[2]}", path.read_text())
    if count != 1:
        raise ValueError(f"{path} has {count} blocks '{block}', not one")
    path.write_text(written)
