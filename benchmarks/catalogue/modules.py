"""`python -m benchmarks.catalogue.modules [NAME...]`: its networks as users of PyTorch have them.

The `nn.Module` itself is given to `tvm_neuron.compile`, and what the library gives compared with torch in float64.
A network runs in a process of its own, with limits; what a file of results has already is not measured again.
"""

import argparse
import json
import random
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

import tvm_neuron
from benchmarks.catalogue.apart import preload, run_apart
from benchmarks.catalogue.entry import Arrays, Entry
from benchmarks.catalogue.sources import ONNX_FOLDER, entries, make
from benchmarks.catalogue.weights import randomise
from tvm_neuron import BuildOptions
from tvm_neuron.errors import NeuronError, NeuronWarning
from tvm_neuron.frontend.torch.results import tensors_of
from tvm_neuron.relay.factory import ExecutorFactory

if TYPE_CHECKING:
    import torch

OPTIONS = BuildOptions(fp32_cast="none", optlevel=1)
FUNCTIONS = 1e-5
"""What functions of the engines may be off by; torch's own are off by 2**-24, which tells how errors grow."""
_IMPORTS = ("torch", "tvm_neuron.relay", "tvm_neuron.codegen.function", "benchmarks.catalogue.preloaded")


def main() -> None:
    """Measures, prints a line each, and how many are right."""
    options = _parser().parse_args()
    chosen = [entry for entry in entries(options.onnx) if not options.names or entry.name in options.names]
    random.Random(options.seed).shuffle(chosen)
    chosen = chosen[: options.sample]
    known = _load(options.json)
    preload(_IMPORTS)
    for entry in chosen:
        if entry.name in known:
            continue
        stopped = run_apart(measure, (entry, options.json), options.seconds, int(options.gigabytes * 1e9))
        if stopped:
            _write(options.json, entry, "stopped", stopped)
        print(json.dumps(_load(options.json)[entry.name]), flush=True)
    known = _load(options.json)
    print(Counter(known[entry.name]["outcome"] for entry in chosen))


def measure(entry: Entry, file: Path) -> None:
    """Appends what is found of one network to the file."""
    import torch

    module, inputs = make(entry, 1)
    torch.manual_seed(0)
    randomise(module, inputs)
    module.eval()
    given = {name: torch.from_numpy(array) for name, array in inputs.items()}
    with torch.no_grad():
        single = [tensor.numpy() for tensor in tensors_of(module(**given))]
    exact = _in_double(module, given) or single
    start = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NeuronWarning)
            library = tvm_neuron.compile(module, given, target="neuron/inf2", options=OPTIONS)
        seconds = time.perf_counter() - start
        found = _outputs(library, inputs)
    except NeuronError as error:
        _write(file, entry, "refused", str(error)[:300])
        return
    except Exception as error:
        _write(file, entry, "failed", f"{type(error).__name__}: {error}"[:300])
        return
    error, bound = _worst(found, single, exact)
    places = Counter(row.where for row in tvm_neuron.report(library).placement)
    outcome = "right" if error <= bound else "wrong"
    _write(file, entry, outcome, f"error {error:.1e} of {bound:.1e}, {seconds:.0f} s to compile, {dict(places)}")


def _in_double(module: "torch.nn.Module", given: dict[str, "torch.Tensor"]) -> list[NDArray] | None:
    """In float64; None of a module that is float32 in parts."""
    import torch

    wide = {name: tensor.double() if tensor.is_floating_point() else tensor for name, tensor in given.items()}
    try:
        with torch.no_grad():
            return [tensor.numpy() for tensor in tensors_of(module.double()(**wide))]
    except RuntimeError:
        return None
    finally:
        module.float()


def _outputs(library: ExecutorFactory, inputs: Arrays) -> list[NDArray]:
    executor = library["default"](tvm_neuron.device())
    for spec in executor.inputs:
        executor.set_input(spec.name, inputs[spec.name])
    executor.run()
    return [executor.get_output(number).numpy() for number in range(len(executor.outputs))]


def _worst(found: Sequence[NDArray], single: Sequence[NDArray], exact: Sequence[NDArray]) -> tuple[float, float]:
    """Error and bound, relative in L2, of the output that is nearest to its bound, or farthest past it."""
    if [each.shape for each in found] != [each.shape for each in single]:
        return float("inf"), 0.0
    pairs = []
    for ours, theirs, right in zip(found, single, exact, strict=True):
        bound = FUNCTIONS * max(1, _error(theirs, right) * 2.0**24) + FUNCTIONS
        pairs.append((_error(ours, right), bound))
    return max(pairs, key=lambda pair: pair[0] / pair[1], default=(0.0, FUNCTIONS))


def _error(found: NDArray, exact: NDArray) -> float:
    if exact.dtype.kind != "f":
        return float(np.mean(found != exact)) if exact.size else 0.0
    difference = np.nan_to_num(found.astype(np.float64) - exact, posinf=0, neginf=0) if exact.size else np.zeros(1)
    same = bool((np.isfinite(found) == np.isfinite(exact)).all())
    length = float(np.linalg.norm(np.nan_to_num(exact.astype(np.float64), posinf=0, neginf=0)))
    return float(np.linalg.norm(difference)) / max(length, 1e-30) if same else float("inf")


def _write(file: Path, entry: Entry, outcome: str, message: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as opened:
        opened.write(json.dumps({"name": entry.name, "outcome": outcome, "message": message}) + "\n")


def _load(file: Path) -> dict[str, dict[str, str]]:
    lines = file.read_text().splitlines() if file.exists() else []
    return {record["name"]: record for record in map(json.loads, lines)}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.catalogue.modules", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="networks; without any, all")
    parser.add_argument("--sample", type=int, metavar="N", help="only so many, chosen at random")
    parser.add_argument("--seed", type=int, default=0, help="of the choice")
    parser.add_argument("--json", type=Path, default=Path("build/modules.jsonl"), metavar="FILE", help="%(default)s")
    parser.add_argument("--onnx", type=Path, default=ONNX_FOLDER, metavar="FOLDER", help="the catalogue's: %(default)s")
    parser.add_argument("--seconds", type=int, default=150, help="of processor time a network: %(default)s")
    parser.add_argument("--gigabytes", type=float, default=24, help="of memory that it may ask for: %(default)s")
    return parser


if __name__ == "__main__":
    main()
