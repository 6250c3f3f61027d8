"""`python -m benchmarks.search_time [MODEL.onnx ...]`: how long -O3 takes in turn, and in processes of Ray at once.

Without files, of three networks with random weights. The bytes have to be the same. Needs the extra `sweep`.
"""

import argparse
import os
from collections.abc import Callable
from functools import partial

import onnx
from rich.console import Console
from rich.table import Table

from benchmarks.row import seconds
from tests.codegen.transformers import Encoder
from tests.models.zoo import NETWORKS
from tvm_neuron import BuildOptions, relay, runtime
from tvm_neuron.frontend.sample_models import light_network

SUBJECTS: dict[str, Callable[[], onnx.ModelProto]] = {
    "DenseNet-121": partial(light_network, "densenet121"),
    "VGG-16": NETWORKS["vgg16"],
    "BERT-base": Encoder(hidden=768, heads=12, rows=128, layers=12).model,
}


def main() -> None:
    """Prints a row for each network: seconds of -O2, of -O3 in turn and of -O3 at once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", metavar="MODEL.onnx")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), metavar="N", help="one for each core")
    options = parser.parse_args()
    subjects = {file: partial(onnx.load, file) for file in options.models} or SUBJECTS
    table = Table("network", "-O2, s", "-O3 in turn, s", f"-O3 in {options.processes} processes, s")
    for name, load in subjects.items():
        efforts = ((2, 1), (3, 1), (3, options.processes))
        took, made = zip(*(compiled(load(), level, processes) for level, processes in efforts), strict=True)
        assert made[1] == made[2], f"{name}: the bytes differ"
        table.add_row(name, *(f"{each:.1f}" for each in took))
    Console().print(table)


def compiled(model: onnx.ModelProto, optlevel: int, processes: int) -> tuple[float, dict[str, bytes]]:
    """The seconds of a build for inf2, and its NEFFs."""
    mod, params = relay.frontend.from_onnx(model)
    options = BuildOptions(device="neuron/inf2", optlevel=optlevel, processes=processes)
    made: list[dict[str, bytes]] = []
    took = seconds(lambda: made.append(runtime.neffs(relay.build(mod, params=params, options=options))))
    return took, made[0]


if __name__ == "__main__":
    main()
