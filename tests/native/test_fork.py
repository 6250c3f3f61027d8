"""A fork while other threads are amid loops: its own loops run on, on threads of its own."""

import subprocess
import sys

_FORKING = """
import os, signal, threading
import ml_dtypes
import numpy as np
from tvm_neuron.native import assign

def copied():
    target = np.zeros((512, 512), np.float32)
    assign(target, np.ones(512, np.float32).astype(ml_dtypes.bfloat16))
    return bool(np.all(target == 1))

def work():
    while not ended.is_set():
        copied()

ended = threading.Event()
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
codes = []
for _ in range(25):
    child = os.fork()
    if not child:
        signal.alarm(30)  # which ends one that waits for a lock that nobody holds
        right = copied() and copied()
        os._exit(0 if right and len(os.listdir("/proc/self/task")) >= 3 else 1)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
ended.set()
for thread in threads:
    thread.join()
assert copied()
print(codes)
"""


def test_amid_loops_of_other_threads() -> None:
    words = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", _FORKING]
    environment = {"TVM_NUM_THREADS": "3"}
    done = subprocess.run(words, timeout=120, capture_output=True, text=True, check=False, env=environment)
    assert (done.stdout, done.stderr) == (f"{[0] * 25}\n", "")
