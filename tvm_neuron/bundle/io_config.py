"""IoConfig: shapes, dtypes and values of a model's inputs, and their form in JSON.

{"inputs": {"data": [[1, 3, 224, 224], "float32"], "axes": {"value": [1]}}, "outputs": ["prob"]}
"""

from dataclasses import dataclass, field
from typing import Any

_FORM = '{"inputs": {"<name>": [[<sizes>], "<dtype>"], "<name>": {"value": <numbers>}}, "outputs": ["<name>"]}'


@dataclass(frozen=True)
class IoConfig:
    """What is said of the inputs, by name; outputs are always those of the model."""

    shapes: dict[str, tuple[int, ...]] | None = None  # None: as in the model
    dtypes: dict[str, str] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)  # of inputs that shapes depend on

    @classmethod
    def from_json(cls, raw: Any) -> "IoConfig":
        """What the form above says.

        Raises:
            ValueError: it has another form.
        """
        try:
            given = dict(raw["inputs"].items())
            values = {name: entry["value"] for name, entry in given.items() if isinstance(entry, dict)}
            tensors = {name: entry for name, entry in given.items() if name not in values}
            found = {name: (tuple(shape), dtype) for name, (shape, dtype) in tensors.items()}
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"it is not of the form {_FORM}") from error
        for name, (shape, dtype) in found.items():
            if not _is_shape(shape) or not isinstance(dtype, str):
                raise ValueError(f"input '{name}' must be [[<sizes of at least 1>], \"<dtype>\"]")
        shapes = {name: shape for name, (shape, _) in found.items()}
        return cls(shapes, {name: dtype for name, (_, dtype) in found.items()}, values)

    def to_json(self) -> dict[str, Any] | None:
        """The inverse of `from_json`; None if nothing is said."""
        if self.shapes is None:
            return None
        tensors = {name: [list(shape), self.dtypes[name]] for name, shape in self.shapes.items()}
        return {"inputs": tensors | {name: {"value": value} for name, value in self.values.items()}}


def _is_shape(shape: tuple[Any, ...]) -> bool:
    return all(type(extent) is int and extent > 0 for extent in shape)
