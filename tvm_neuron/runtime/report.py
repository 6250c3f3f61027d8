"""`tvm_neuron.report`: what a compiled library costs, from its manifest and its NEFFs."""

from tvm_neuron import neff
from tvm_neuron.profile import CpuPart, Part, Report, make_report
from tvm_neuron.runtime.contents import Library, manifest, neffs


def report(library: Library, bucket: int = 0) -> Report:
    """The report of a library, built just now or loaded from a file; of one of its buckets if it has several.

    Raises NeuronError when it was not compiled by tvm_neuron or has no such bucket, NeffError when a NEFF in it can't
    be read.
    """
    described = manifest(library, bucket)
    placement = [neff.Placement(**row) for row in described["placement"]]
    return make_report(placement, parts(library, bucket), described["device"])


def parts(library: Library, bucket: int = 0) -> list[Part]:
    """What a library runs, in turn: its programs, and what it does on the CPU between them.

    Raises what `report` does.
    """
    compiled = {name: neff.read_pipeline(data) for name, data in neffs(library, bucket).items()}
    order = manifest(library, bucket)["order"]
    return [compiled[name] if name in compiled else CpuPart(name) for name in order]
