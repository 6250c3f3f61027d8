"""Devices from files: read again when they change, and refused with the reason."""

import json
from pathlib import Path

import pytest

from tvm_neuron.errors import DeviceError
from tvm_neuron.hw import load_device
from tvm_neuron.hw.load import device_to_dict


def test_a_file_that_changes_is_read_again(tmp_path: Path) -> None:
    path, raw = tmp_path / "mine.json", device_to_dict(load_device("inf2"))
    for kib in (24, 48):
        raw["sbuf_bytes_per_partition"] = {"value": kib << 10, "source": "this test"}
        path.write_text(json.dumps(raw))
        assert load_device(str(path)).sbuf_bytes_per_partition == kib << 10


def test_files_that_describe_no_device(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    with pytest.raises(DeviceError, match=r"device file '.*mine.json' can't be read: No such file"):
        load_device(str(path))
    for text in ("{", 20_000 * "["):
        path.write_text(text)
        with pytest.raises(DeviceError, match=r"device file '.*mine.json' is not JSON"):
            load_device(str(path))
    path.write_text("[]")
    with pytest.raises(DeviceError, match=r"device '.*mine.json' is not a JSON object; copy a chip"):
        load_device(str(path))
    path.write_text(json.dumps(device_to_dict(load_device("inf1")) | {"name": ["mine"]}))
    with pytest.raises(DeviceError, match=r"device '.*mine.json': its name is \['mine'\], not text"):
        load_device(str(path))


def test_descriptions_of_older_versions_are_read(tmp_path: Path) -> None:
    raw = device_to_dict(load_device("inf2"))
    older = {key: value for key, value in raw.items() if key not in ("dma_indirect_ns", "reciprocal_cycles")}
    (tmp_path / "chip.json").write_text(json.dumps(older))
    found = load_device(str(tmp_path / "chip.json"))
    assert (found.dma_indirect_ns, found.reciprocal_cycles) == (0, load_device("inf2").reciprocal_cycles)
