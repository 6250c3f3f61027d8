"""Scripts whose code stands in comments: the code blocks that a reader is to type, as a script."""

from collections.abc import Callable

COMMANDS: dict[str, Callable[[str], str]] = {}
