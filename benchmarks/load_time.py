"""What loading a NEFF takes, and how large it is: plain, as it is by default, beside compressed."""

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.row import Row, side_by_side
from benchmarks.run_time import SUBJECTS, in_ms
from tvm_neuron import neff, relay, runtime

NETWORKS = ("ResNet-50", "BERT-base encoder")
_REPEATS = 9
PEER = "compressed"


def measure(network: str) -> list[Row]:
    """From a file that the operating system has in memory to a NEFF with all checksums and its program verified."""
    mod, params = relay.frontend.from_onnx(SUBJECTS[network]())
    (data,) = runtime.neffs(relay.build(mod, target="neuron", params=params)).values()
    with TemporaryDirectory() as folder:
        plain, small = Path(folder, "plain.neff"), Path(folder, "small.neff")
        neff.save(neff.read(data), plain)
        neff.save(neff.read(data), small, compress=True)
        sizes = [(file.stat().st_size / 1e6,) for file in (plain, small)]
        calls = [(partial(_load, file), 1) for file in (plain, small)]
        ours, theirs = map(in_ms, side_by_side(calls, _REPEATS))
    return [
        Row(what=f"{network}: loading its NEFF", unit="ms", samples=ours, peer=PEER, peer_samples=theirs),
        Row(what=f"{network}: its NEFF", unit="MB", samples=sizes[0], peer=PEER, peer_samples=sizes[1]),
    ]


def _load(file: Path) -> None:
    neff.verified(neff.read_pipeline(neff.read_file(file)))
