"""Tables of patterns by compiler."""

from collections.abc import Callable
from typing import Any

_TABLES: dict[str, Any] = {}


def register_pattern_table(compiler: str, table: Callable[[], Any] | None = None) -> Any:
    """Keep what a function gives as the table of a compiler; without the function, a decorator for it."""

    def register(given: Callable[[], Any]) -> Callable[[], Any]:
        _TABLES[compiler] = given()
        return given

    return register(table) if table is not None else register


def get_pattern_table(compiler: str) -> Any:
    """The table of a compiler, None if it has none."""
    return _TABLES.get(compiler)
