"""Damaged files give a clean refusal or a program that verifies and runs, and nothing else, whatever the checksums say.

The cases run in processes of their own, see `tests.neff.fuzz`: here is only what they must come to.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from random import Random

import pytest

from tests.neff.damage import cut, mutated
from tests.neff.samples import random_neff
from tvm_neuron import neff
from tvm_neuron.errors import NeffError

ROUNDS = 2000
MANY = 2_000
SLOWEST_S = 10


@pytest.mark.parametrize("compress", [False, True])
def test_any_byte_changed(compress: bool) -> None:
    rng = Random(compress)
    data = neff.write(random_neff(rng), compress)
    for _ in range(ROUNDS):
        damaged = rng.choice((mutated, mutated, mutated, cut))(rng, data)
        if damaged != data:
            with pytest.raises(NeffError):
                neff.read(damaged)


@pytest.mark.slow
def test_damage_that_no_checksum_tells() -> None:
    """Every case ends well and soon; enough of them get as far as the verifier, and as the hardware model."""
    processes = min(8, os.cpu_count() or 1)
    running, first = [], 0
    for size in (len(range(shard, MANY, processes)) for shard in range(processes)):
        command = [sys.executable, "-m", "tests.neff.fuzz", str(first), str(size)]
        running.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        first += size
    total: Counter[str] = Counter()
    for process in running:
        out, err = process.communicate()
        assert process.returncode == 0, f"{process.args}: exit code {process.returncode}\n{err[-3000:]}"
        found = json.loads(out)
        assert found["slowest_s"] < SLOWEST_S, found
        total += Counter(found["outcomes"])
    assert total.total() == MANY
    for what in ("refused as a file", "refused as a program", "run"):
        assert total[what] > MANY // 20, total
