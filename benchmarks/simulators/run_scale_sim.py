"""SCALE-Sim over a list of layers, run by its own Python: `run_scale_sim.py REQUEST.json FOLDER`; prints the cycles."""

import contextlib
import csv
import io
import json
import sys
from pathlib import Path

from scalesim.scale_sim import scalesim

_CONFIG = """
[general]
run_name = run
[run_presets]
InterfaceBandwidth = USER
UseRamulatorTrace = False
[architecture_presets]
ArrayHeight = {rows}
ArrayWidth = {columns}
ifmapsramszkB = {buffer_kb}
filtersramszkB = {buffer_kb}
ofmapsramszkB = {buffer_kb}
IfmapOffset = 0
FilterOffset = 10000000
OfmapOffset = 20000000
Dataflow = ws
Bandwidth = {words_per_cycle}
ReadRequestBuffer = 64
WriteRequestBuffer = 64
[layout]
IfmapCustomLayout = False
FilterCustomLayout = False
IfmapSRAMBankBandwidth = 10
IfmapSRAMBankNum = 10
IfmapSRAMBankPort = 2
FilterSRAMBankBandwidth = 10
FilterSRAMBankNum = 10
FilterSRAMBankPort = 2
[sparsity]
SparsitySupport = false
"""
_COLUMNS = ("name", "height", "width", "kernel_height", "kernel_width", "channels", "filters", "stride")


def main() -> None:
    """Words are elements: buffers and bandwidth come in elements of the modelled dtype."""
    request, folder = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    config, topology, layout = folder / "run.cfg", folder / "topology.csv", folder / "layout.csv"
    config.write_text(_CONFIG.format(**request["array"]))
    rows = [[str(layer[column]) for column in _COLUMNS] for layer in request["layers"]]
    topology.write_text("\n".join(",".join((*row, "")) for row in [_COLUMNS, *rows]))
    layout.write_text("\n".join(",".join((row[0], *["1"] * 20, "")) for row in [_COLUMNS, *rows]))
    with contextlib.redirect_stdout(io.StringIO()):
        scalesim(True, False, str(config), str(topology), str(layout)).run_scale(str(folder))
    with (folder / "run" / "COMPUTE_REPORT.csv").open() as file:
        table = [{key.strip(): value for key, value in row.items() if key} for row in csv.DictReader(file)]
    print(json.dumps({"cycles": round(sum(float(row["Total Cycles"]) for row in table))}))


if __name__ == "__main__":
    main()
