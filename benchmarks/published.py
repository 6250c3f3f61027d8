"""Networks whose time AWS published, as this compiler builds them: what was measured, ours, and what lies around it.

Of each: the compiled program's time, the bound that no program could beat, and `plain.py`'s operators in turn, the
bracket from above. Where the measurement has the host in it, so has ours: `Device.host_request_ns`, the one constant
that is fitted to such measurements, and the link's time for inputs and outputs.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from random import Random

import onnx

import tvm_neuron
from benchmarks import plain
from benchmarks.plain import Plain, Work, in_turn_us
from tests.models.zoo import encoders
from tests.models.zoo.resnet import resnet
from tests.models.zoo.vgg import vgg16
from tvm_neuron import relay
from tvm_neuron.frontend.sample_models import light_network
from tvm_neuron.hw import load_device, load_instance
from tvm_neuron.neff import read_pipeline
from tvm_neuron.profile import interval_us
from tvm_neuron.runtime import neffs

END_TO_END, ON_DEVICE, FULL = "end to end, with the host", "one core, on the device", "several cores at full rate"


@dataclass(frozen=True)
class Published:
    """`measured_us` is of one run; at full rate, between two runs of one core while `cores` of its chip work."""

    group: str
    chip: str
    what: str
    measured_us: float
    make: Callable[[], onnx.ModelProto]
    operators: Callable[[Plain], Iterator[Work]]
    cores: int = 1


@dataclass(frozen=True)
class Compared:
    """Microseconds; those with a host have it in all three, `host_us` of it the request."""

    row: Published
    ours_us: float
    bound_us: float
    plain_us: float
    host_us: float

    def error(self, host_us: float | None = None) -> float:
        """Relative, as it is or with another request."""
        ours = self.ours_us if host_us is None else self.ours_us - self.host_us + host_us
        return ours / self.row.measured_us - 1


def _bert(batch: int = 1, **sizes: int) -> tuple[Callable[[], onnx.ModelProto], Callable[[Plain], Iterator[Work]]]:
    return partial(encoders.bert, batch, **sizes), partial(plain.bert, batch=batch, **sizes)


_LARGE, _DISTILLED = {"hidden": 1024, "heads": 16, "layers": 24}, {"layers": 6}
_RESNET50 = partial(light_network, "resnet50"), plain.resnet
_FIVE = partial(light_network, "resnet50", batch=5), partial(plain.resnet, batch=5)
ROWS = (
    Published(END_TO_END, "inf2", "ResNet-18", 600, partial(resnet, 18), partial(plain.resnet, layers=18)),
    Published(END_TO_END, "inf2", "ResNet-50", 830, *_RESNET50),
    Published(END_TO_END, "inf2", "ResNet-101", 1010, partial(resnet, 101), partial(plain.resnet, layers=101)),
    Published(END_TO_END, "inf2", "VGG-16", 1960, vgg16, plain.vgg16),
    Published(END_TO_END, "inf2", "DistilBERT, 128 tokens", 580, *_bert(**_DISTILLED)),
    Published(END_TO_END, "inf2", "BERT-large, 128 tokens", 2690, *_bert(**_LARGE)),
    Published(ON_DEVICE, "inf1", "ResNet-50", 2709.6, *_RESNET50),
    Published(ON_DEVICE, "inf1", "BERT-base, 128 tokens", 7900, *_bert()),
    Published(ON_DEVICE, "inf1", "BERT-base, 128 tokens, batch 3", 10500, *_bert(3)),
    Published(ON_DEVICE, "inf2", "BERT-base, 128 tokens", 1050, *_bert()),
    Published(FULL, "inf1", "ResNet-50, 16 copies on 16 cores", 16e6 / 3115, *_RESNET50, cores=4),
    Published(FULL, "inf1", "ResNet-50, batch 5, 16 copies on 16 cores", 5 * 16e6 / 6400, *_FIVE, cores=4),
    Published(FULL, "inf1", "BERT-base, 128 tokens, batch 4, on 4 cores", 4 * 4e6 / 1056, *_bert(4), cores=4),
)


def compare(row: Published) -> Compared:
    """Compiles one and sets the times side by side."""
    device = load_device(row.chip)
    mod, params = relay.frontend.from_onnx(row.make())
    library = relay.build(mod, target=f"neuron/{row.chip}", params=params)
    report = tvm_neuron.report(library)
    in_turn = in_turn_us(row.operators(Plain(device)), device)
    if row.group == END_TO_END:
        host = report.end_to_end
        around = host.total_us - host.device_us
        return Compared(row, host.total_us, report.bound_us + around, in_turn + around, host.request_us)
    instance = load_instance("", device)
    if row.cores == 1:
        return Compared(row, report.latency_us, report.bound_us, in_turn, 0.0)
    (data,) = neffs(library).values()
    ours = interval_us(read_pipeline(data), instance, row.cores)
    shared = report.dram_bytes * row.cores * 1e6 / instance.chip_dram_bytes_per_second
    return Compared(row, ours, max(report.bound_us, shared), max(in_turn, shared), 0.0)


def compare_all(rows: Sequence[Published] = ROWS) -> list[Compared]:
    """All of them, each in a process of its own."""
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
        return list(pool.map(compare, rows))


def fitted_us(rows: Sequence[Compared]) -> float:
    """The request whose mean relative error is least."""
    return float(min(range(0, 1001, 5), key=lambda us: sum(abs(row.error(us)) for row in rows)))


def hold_out(rows: Sequence[Compared], seed: int) -> tuple[list[Compared], list[Compared]]:
    """Half of the rows for the fit, the others to judge it by."""
    drawn = list(rows)
    Random(seed).shuffle(drawn)
    half = (len(drawn) + 1) // 2
    return drawn[:half], drawn[half:]
