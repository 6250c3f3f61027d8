"""load_device: a chip by its name, or the user's own description from a JSON file."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from tvm_neuron.errors import DeviceError
from tvm_neuron.hw.device import Device

_FOLDER = Path(__file__).parent / "chips"
# What descriptions of chips, those in NEFFs too, did not have from the start: the chip lacks it or is as others.
_LATER: dict[str, Any] = {
    "core_generation": {"value": 2, "source": "not described: NeuronCore-v2"},
    "dma_far_bytes": {"value": 131_072, "source": "not described: as NeuronCore-v2"},
    "dma_open_places": {"value": 16, "source": "not described: as NeuronCore-v2"},
    "dma_far_ns": {"value": 0, "source": "not described: no longer, as when the description was made"},
    "dma_indirect_ns": {"value": 0, "source": "not described: no computed addresses"},
    "dma_transpose_percent": {"value": 0, "source": "not described: element by element"},
    "fp32_transpose_passes": {"value": 4, "source": "not described: as NeuronCore-v2, which multiplies by ones"},
    "fp8_matmul_rows": {"value": 0, "source": "not described: no 8-bit floats"},
    "gpsimd_clock_hz": {"value": 0, "source": "not described: no GpSimd engine"},
    "gpsimd_start_cycles": {"value": 150, "source": "not described: as NeuronCore-v2"},
    "host_request_ns": {"value": 450_000, "source": "not described: as inf2"},
    "instruction_overhead_cycles": {"value": 0, "source": "not described: none, as when the description was made"},
    "narrow_rate": {"value": 1, "source": "not described: as NeuronCore-v2"},
    "psum_accesses": {"value": 1, "source": "not described: as NeuronCore-v2"},
    "reciprocal_cycles": {"value": 2, "source": "not described: as the chips that are"},
    "sbuf_accesses": {"value": 1, "source": "not described: as NeuronCore-v2"},
    "stationary_columns_per_cycle": {"value": 4, "source": "not described: as NeuronCore-v2"},
}
CHIPS = ("inf1", "inf2", "trn1", "trn2")


def load_device(name: str) -> Device:
    """The device called `name` (`inf1`, `neuron/inf2`, ...) or described by the JSON file `name`.

    >>> from tvm_neuron.hw import load_device
    >>> load_device("neuron/inf2").sbuf_bytes_per_partition
    196608

    Raises:
        DeviceError: no such chip or file, a key missing or unknown, a value that makes no sense.
    """
    chip = name.removeprefix("neuron/")
    chip = "inf1" if chip == "neuron" else chip
    path = _FOLDER / f"{chip}.json" if chip in CHIPS else Path(name)
    if chip not in CHIPS and path.suffix != ".json":
        raise DeviceError(f"unknown device '{name}': take one of {', '.join(CHIPS)}, or the path of a .json file")
    try:
        return _parsed(path.read_text(), str(path))
    except OSError as error:
        raise DeviceError(f"device file '{path}' can't be read: {error.strerror}") from error


@cache
def _parsed(text: str, where: str) -> Device:
    """By its text, so that a file which changes in the meantime is read again."""
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DeviceError(f"device file '{where}' is not JSON: {error}") from error
    return device_from_dict(raw, where)


def device_from_dict(raw: Any, where: str) -> Device:
    """Builds a Device from `{"name": ..., "<quantity>": {"value": ..., "source": ...}, ...}`.

    Raises:
        DeviceError: it is of another form, or a value makes no sense.
    """
    if not isinstance(raw, Mapping):
        raise DeviceError(f"device '{where}' is not a JSON object; copy a chip from {_FOLDER} and change it")
    quantities = _LATER | {key: entry for key, entry in raw.items() if key != "name"}
    unknown = sorted(set(quantities) - set(Device.numbers()))
    missing = sorted(set(Device.numbers()) - set(quantities))
    if "name" not in raw or unknown or missing:
        raise DeviceError(
            f"device '{where}': unknown keys [{', '.join(unknown)}], missing keys "
            f"[{', '.join(missing + ([] if 'name' in raw else ['name']))}]; copy a chip from {_FOLDER} and change it"
        )
    if not isinstance(raw["name"], str):
        raise DeviceError(f"device '{where}': its name is {raw['name']!r}, not text")
    for key, entry in quantities.items():
        if not isinstance(entry, Mapping) or set(entry) != {"value", "source"}:
            raise DeviceError(f'device \'{where}\': {key} must be {{"value": ..., "source": ...}}, not {entry!r}')
    values = {key: entry["value"] for key, entry in quantities.items()}
    return Device(name=raw["name"], sources={k: e["source"] for k, e in quantities.items()}, **values)


def device_to_dict(device: Device) -> dict[str, Any]:
    """The inverse of `device_from_dict`; what a NEFF stores."""
    entries = {k: {"value": getattr(device, k), "source": device.sources[k]} for k in Device.numbers()}
    return {"name": device.name, **entries}
