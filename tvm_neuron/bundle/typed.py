"""typed: what JSON holds as a value of a declared type, or a refusal."""

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

_EXACT = 2**53  # integers up to here are floats too


def typed(raw: Any, kind: Any, what: str) -> Any:
    """`raw` as `kind`: text, a number, a truth value or None, a union, tuple or mapping of these, a dataclass.

    Raises:
        ValueError: it is something else; `what` names it.
    """
    origin, inner = get_origin(kind) or kind, get_args(kind)
    if origin is UnionType:
        for each in inner:
            with suppress(ValueError):
                return typed(raw, each, what)
    elif origin is tuple and isinstance(raw, list):
        return tuple(typed(each, inner[0], what) for each in raw)
    elif origin is Mapping and isinstance(raw, dict):
        return {name: typed(each, inner[1], f"{what}.{name}") for name, each in raw.items()}
    elif is_dataclass(origin) and isinstance(raw, dict):
        return kind(**typed_fields(raw, kind, [field.name for field in fields(origin)], what))
    elif origin is float and type(raw) is int and abs(raw) <= _EXACT:
        return float(raw)
    elif type(raw) is origin:
        return raw
    raise ValueError(f"its {what} is {str(raw)[:40]!r}, not of the type {getattr(kind, '__name__', kind)}")


def typed_fields(raw: Any, kind: type, names: Collection[str], what: str) -> dict[str, Any]:
    """The fields `names` of the dataclass `kind`, all of which and nothing else `raw` must hold.

    Raises:
        ValueError: it does not.
    """
    if not isinstance(raw, dict) or set(raw) != set(names):
        raise ValueError(f"its {what} must be an object with the keys {', '.join(sorted(names))}")
    hints = get_type_hints(kind)
    return {name: typed(raw[name], hints[name], f"{what}.{name}") for name in names}
