"""Kept: what other simulators took, so that the table can be made again without their minutes and gigabytes."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from benchmarks.simulators.measure import HERE, Measured
from benchmarks.simulators.peers import Peer


@dataclass(frozen=True)
class Kept:
    """Results in a file of JSON, each under all that it depends on but the machine: version, script, request."""

    file: Path

    def get(self, peer: Peer, request: Mapping[str, Any]) -> Measured | None:
        """What was measured before; None if nothing was, or anything else was asked."""
        found = self._all().get(_key(peer, request))
        return found and Measured(**found)

    def put(self, peer: Peer, request: Mapping[str, Any], measured: Measured) -> None:
        """Adds one result."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(json.dumps(self._all() | {_key(peer, request): asdict(measured)}, indent=1))

    def _all(self) -> dict[str, Any]:
        return dict(json.loads(self.file.read_text())) if self.file.exists() else {}


KEPT = Kept(Path("build/simulators.json"))
"""Where the benchmarks keep them."""


def _key(peer: Peer, request: Mapping[str, Any]) -> str:
    asked = {name: value for name, value in request.items() if name != "onnx"}  # its path is another each time
    whole = json.dumps([peer.requirements, (HERE / peer.script).read_text(), asked], sort_keys=True)
    return f"{peer.name} {sha256(whole.encode()).hexdigest()[:16]}"
