"""ZigZag over an ONNX file, run by its own Python: `run_zigzag.py REQUEST.json FOLDER`; prints the cycles."""

import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

import yaml
import zigzag
from zigzag.api import get_hardware_performance_zigzag

_INPUTS = Path(zigzag.__file__).parent / "inputs"
_ARRAY, _BUFFER, _DRAM = "operational_array", "sram_2MB", "dram"


def main() -> None:
    """ZigZag's own weight-stationary array (`tpu_like`), in the size and with the memories that are asked for."""
    request, folder = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    array = request["array"]
    hardware = yaml.safe_load((_INPUTS / "hardware" / "tpu_like.yaml").read_text())
    hardware[_ARRAY]["sizes"] = [array["rows"], array["columns"]]
    hardware["memories"][_BUFFER]["size"] = array["buffer_kb"] * 3 * 1024 * 8
    _set_bandwidth(hardware["memories"][_BUFFER], array["rows"] * 8)  # a word for each row in each cycle
    _set_bandwidth(hardware["memories"][_DRAM], array["words_per_cycle"] * 8)
    mapping = yaml.safe_load((_INPUTS / "mapping" / "tpu_like.yaml").read_text())
    mapping = [entry for entry in mapping if entry["name"] in ("default", "Add", "Pooling")]
    for entry in mapping:
        for way in entry["spatial_mapping"].values():
            way[0] = way[0].replace("32", str(array["rows"]))
    files = folder / "hardware.yaml", folder / "mapping.yaml"
    for file, value in zip(files, (hardware, mapping), strict=True):
        file.write_text(yaml.safe_dump(value, sort_keys=False))
    with contextlib.redirect_stdout(io.StringIO()):
        _, cycles, _ = get_hardware_performance_zigzag(
            request["onnx"], *map(str, files), opt="latency", dump_folder=str(folder), loma_show_progress_bar=False
        )
    print(json.dumps({"cycles": round(cycles)}))


def _set_bandwidth(memory: dict[str, Any], bits: int) -> None:
    for port in memory["ports"]:
        port["bandwidth_max"] = max(bits, port["bandwidth_min"])
        port["bandwidth_min"] = min(bits, port["bandwidth_min"])


if __name__ == "__main__":
    main()
