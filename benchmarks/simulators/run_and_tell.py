"""Runs a script as the main program, then tells what it took: `run_and_tell.py DISTRIBUTION SCRIPT [WORD ...]`.

It needs nothing but Python, since it runs in each simulator's own environment. The peak is that of this process alone;
what a parent could ask for afterwards would count the parent's own memory, too.
"""

import json
import re
import runpy
import sys
import time
from importlib.metadata import version
from pathlib import Path

if __name__ == "__main__":
    distribution, *sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
    status = Path("/proc/self/status")
    peak = re.search(r"^VmHWM:\s+(\d+) kB", status.read_text(), re.MULTILINE) if status.exists() else None
    told = {"version": version(distribution), "cpu_seconds": time.process_time()}
    print(json.dumps(told | {"peak_bytes": int(peak[1]) * 1024 if peak else None}))
