"""Damages NEFFs and reads them: `python -m tests.neff.fuzz FIRST COUNT`. The exit code is 0 if every one was refused
cleanly or held a program that verifies and can be timed and run.

Runs in a process of its own, because what it looks for would end the process: a signal, memory without bound (the
address space is limited), a hang (an alarm). The case is a number, so `FIRST` with a COUNT of 1 repeats it.
"""

import json
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from random import Random

import numpy as np
from onnx import TensorProto, helper

from tests.codegen.random_networks import RandomNetwork
from tests.codegen.transformers import Encoder
from tests.neff.damage import damaged
from tests.neff.samples import add_relu, random_neff
from tests.onnx_models import make_model
from tvm_neuron import BuildOptions, neff, relay, runtime
from tvm_neuron.errors import NeffError, ProgramError, RangeError
from tvm_neuron.isa.dtypes import DTYPES
from tvm_neuron.program import print_program
from tvm_neuron.program.dynamic import expand
from tvm_neuron.sim import Cores, time_program

MORE_BYTES = 2 << 30  # that a case may take
MOST_SECONDS = 20  # of a case, on a busy machine; usually it takes milliseconds
_WRITTEN = 5  # of so many cases, one is written again; prime to the number of samples
# What is larger is only verified: a sound program may ask for all of the device's memory, and hours of its time.
MOST_RUN_BYTES, MOST_RUN_INSTRUCTIONS = 200 << 20, 20_000


def samples() -> list[bytes]:
    """Nonsense, a small program by hand, and compiled networks; each plain and compressed."""
    pipelines = [neff.Pipeline.of(random_neff(Random(0))), neff.Pipeline.of(add_relu())]
    pipelines += [neff.read_pipeline(data) for data in _compiled()]
    return [b"".join(neff.pipeline_pieces(pipeline, compress)) for pipeline in pipelines for compress in (False, True)]


def _compiled() -> Iterator[bytes]:
    """With weights that stay in SBUF, over two cores, with attention, with computed positions."""
    networks = [RandomNetwork(seed, operators=3, channels=(3, 8), largest=6).model() for seed in (8, 12, 6)]
    attention = Encoder(hidden=8, heads=2, rows=6).model()
    table = np.random.default_rng(0).standard_normal((9, 8)).astype(np.float32)
    gather = helper.make_node("Gather", ["table", "ids"], ["y"])
    embedding = make_model([gather], {"ids": [5]}, ["y"], {"table": table}, dtype=TensorProto.INT64)
    for model, target, options in (
        (networks[0], "neuron", BuildOptions()),
        (networks[1], "neuron", BuildOptions(static_weights=True)),
        (networks[2], "neuron", BuildOptions(pipeline_cores=2)),
        (attention, "neuron", BuildOptions()),
        (embedding, "neuron/inf2", BuildOptions(minimum_segment_size=1)),
    ):
        mod, params = relay.frontend.from_onnx(model)
        yield from runtime.neffs(relay.build(mod, target=target, params=params, options=options)).values()


def outcome(data: bytes, is_written: bool) -> str:
    """What reading, verifying, timing and running it comes to; before, it is printed and written again if wanted."""
    try:
        read = neff.read_pipeline(data)
        if is_written:
            _write_and_print(read)
        pipeline = neff.verified(read)
    except NeffError as error:
        if not str(error).isprintable():
            raise
        return "refused as a program" if "no sound program" in str(error) else "refused as a file"
    if any(_is_large(core) for core in pipeline.cores):
        return "verified, and too large to be run here"
    try:
        for core in pipeline.cores:
            time_program(core.loading, core.device)
            time_program(core.program, core.device)
    except ProgramError as error:
        if "can be counted" not in str(error):
            raise
        return "verified, and too slow to be timed"
    cores = Cores(pipeline)
    try:
        cores.run({name: np.zeros(tensor.shape, DTYPES[tensor.dtype]) for name, tensor in cores.inputs.items()})
    except (RangeError, ProgramError):  # positions that were computed, and what is resident written over
        return "verified, and refused as it ran"
    return "run"


def _write_and_print(pipeline: neff.Pipeline) -> None:
    for core in pipeline.cores:
        again = neff.write(core)
        assert neff.write(neff.read(again)) == again  # bytes, because an immediate may be NaN
        json.dumps(neff.describe(core, neff.read_header(again)))
        print_program(core.program)


def _is_large(core: neff.Neff) -> bool:
    memories = core.device.sbuf_bytes + core.device.psum_bytes_per_partition * core.device.partitions
    tensors = sum(tensor.size_bytes for tensor in core.program.tensors)
    dynamic = len(expand(core.program)) + len(expand(core.loading))
    return memories + tensors > MOST_RUN_BYTES or dynamic > MOST_RUN_INSTRUCTIONS


def main() -> None:
    """Prints as JSON how many came to what; ends with the case that is wrong."""
    first, count = map(int, sys.argv[1:])
    found = samples()
    with open("/proc/self/statm") as statm:
        used = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MORE_BYTES, used + MORE_BYTES))
    outcomes: Counter[str] = Counter()
    slowest, of_case = 0.0, first
    for case in range(first, first + count):
        begin = time.process_time()
        signal.alarm(MOST_SECONDS)
        try:
            data = damaged(Random(case), found[case % len(found)])
            outcomes[outcome(data, is_written=case % _WRITTEN == 0)] += 1
        except BaseException:
            sys.stderr.write(f"case {case}\n")
            raise
        slowest, of_case = max((slowest, of_case), (time.process_time() - begin, case))
    signal.alarm(0)
    json.dump({"outcomes": outcomes, "slowest_s": slowest, "slowest_case": of_case}, sys.stdout)


if __name__ == "__main__":
    main()
