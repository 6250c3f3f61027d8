"""What a server is told: which files it serves under which names, where it listens, and its limits."""

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from tvm_neuron.errors import OptionError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_MOST_BODY_BYTES = (1 << 31) - 1  # of a message of gRPC


@dataclass(frozen=True)
class Place:
    """A version of a model, and the file of its library."""

    name: str
    version: str
    path: Path

    @classmethod
    def parse(cls, text: str) -> "Place":
        """`FILE`, `NAME=FILE` or `NAME:VERSION=FILE`; the version is 1 and the name that of the file where not given.

        Raises:
            OptionError: it has another form, or there is no such file.
        """
        label, equals, file = text.rpartition("=")
        path = Path(file)
        name, _, version = label.partition(":") if equals else (path.stem, "", "")
        if not _NAME.fullmatch(name) or (version and not version.isdecimal()):
            raise OptionError(f"'{text}' is not FILE, NAME=FILE or NAME:VERSION=FILE, the version being a number")
        if not path.is_file():
            raise OptionError(
                f"'{path}' is no file: compile a library, neuron-cc compile model.onnx --output {name}.so"
            )
        return cls(name, version or "1", path)


def places(texts: Iterable[str]) -> list[Place]:
    """All that are to be served.

    Raises:
        OptionError: see `Place.parse`; a version of a model is there twice.
    """
    found: dict[tuple[str, str], Place] = {}
    for text in texts:
        place = Place.parse(text)
        if (place.name, place.version) in found:
            raise OptionError(
                f"version {place.version} of model '{place.name}' is given twice: write NAME:VERSION=FILE with another"
            )
        found[place.name, place.version] = place
    return list(found.values())


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Limits and addresses; a port of 0 is any that is free.

    `cores` are those of each version of a model, on which copies of it share its requests; None: one copy.

    Raises:
        OptionError: one of them is out of its range.
    """

    host: str = "127.0.0.1"
    http_port: int = 8000
    grpc_port: int = 8001
    cores: int | None = None
    batch_window_us: int = 0
    queue: int = 64
    request_timeout_seconds: float = 60.0
    drain_seconds: float = 30.0
    body_bytes: int = 64 << 20
    rows: int = 1024

    def __post_init__(self) -> None:
        least = {
            "http_port": 0, "grpc_port": 0, "batch_window_us": 0, "queue": 1, "body_bytes": 1, "rows": 1,
            "drain_seconds": 0,
        }  # fmt: skip
        most = {"http_port": 65535, "grpc_port": 65535, "body_bytes": _MOST_BODY_BYTES}
        for name, low in least.items():
            value, high = getattr(self, name), most.get(name)
            if value < low or (high is not None and value > high):
                limits = f"at least {low}" + (f" and at most {high}" if high is not None else "")
                raise OptionError(f"--{name.replace('_', '-')} {value}: it must be {limits}")
        if not self.request_timeout_seconds > 0:
            raise OptionError(f"--request-timeout-seconds {self.request_timeout_seconds:g}: it must be more than 0")
        if self.cores is not None and self.cores < 1:
            raise OptionError(f"--cores {self.cores}: it must be at least 1")

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        with suppress(ValueError):  # a name
            return ip_address(self.host).is_loopback
        return self.host == "localhost"
