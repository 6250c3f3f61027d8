"""How busy the modelled core is: modelled time over the roofline of one core, beside what is to be reached.

`python -m benchmarks.busy [NAME...] [--chip CHIP]`. Nothing is run: the time of a program doesn't depend on its data.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import onnx
from rich.table import Table

import tvm_neuron
from benchmarks.table import CONSOLE
from tests.models.zoo import NETWORKS
from tvm_neuron import relay
from tvm_neuron.frontend.sample_models import light_network

CHIPS = ("inf1", "inf2")


@dataclass(frozen=True)
class Goal:
    """A network, and the times over its roofline to reach on each chip; None where none is set."""

    network: str
    batch: int
    make: Callable[[], onnx.ModelProto]
    ratios: tuple[float | None, ...]


@dataclass(frozen=True)
class Busy:
    """One network on one chip; times are sums over its parts on the NeuronCore."""

    network: str
    chip: str
    batch: int
    roofline_us: float
    latency_us: float
    goal: float | None
    dram_mb: float

    @property
    def ratio(self) -> float:
        """Modelled time over roofline."""
        return self.latency_us / self.roofline_us

    @property
    def is_met(self) -> bool | None:
        """Whether the goal is reached, if there is one."""
        return None if self.goal is None else self.ratio <= self.goal


GOALS = (
    Goal("resnet50", 1, partial(light_network, "resnet50"), (1.2, 2.5)),
    Goal("resnet50", 8, partial(light_network, "resnet50", batch=8), (1.4, 1.8)),
    Goal("vgg16", 1, NETWORKS["vgg16"], (1.4, 1.8)),
    Goal("yolov4_608", 1, partial(NETWORKS["yolov4"], 608), (1.4, 1.8)),
    Goal("mobilenet_v2", 1, NETWORKS["mobilenet_v2"], (2.5, 3.5)),
    Goal("densenet121", 1, partial(light_network, "densenet121"), (2.5, 3.5)),
    Goal("efficientnet_b0", 1, NETWORKS["efficientnet_b0"], (2.5, 3.5)),
    Goal("unet", 1, NETWORKS["unet"], (None, None)),
)


def measure(goals: Sequence[Goal] = GOALS, chips: Sequence[str] = CHIPS) -> Iterator[Busy]:
    """Each network compiled for each chip."""
    for goal in goals:
        model = goal.make()
        for chip, ratio in zip(CHIPS, goal.ratios, strict=True):
            if chip not in chips:
                continue
            mod, params = relay.frontend.from_onnx(model)
            report = tvm_neuron.report(relay.build(mod, target=f"neuron/{chip}", params=params))
            yield Busy(
                goal.network, chip, goal.batch, report.roofline_us, report.latency_us, ratio, report.dram_bytes / 1e6
            )


def show(rows: Sequence[Busy]) -> None:
    """The table."""
    table = Table(title="Modelled time over roofline, one core", title_justify="left")
    for name in ("network", "chip", "batch>", "roofline us>", "modelled us>", "DRAM MB>", "ratio>", "goal>", "met"):
        table.add_column(name.rstrip(">"), justify="right" if name.endswith(">") else "left")
    for row in rows:
        table.add_row(
            row.network, row.chip, str(row.batch), f"{row.roofline_us:,.1f}", f"{row.latency_us:,.1f}",
            f"{row.dram_mb:,.1f}", f"{row.ratio:.2f}", "" if row.goal is None else f"{row.goal:.2f}",
            {None: "", True: "yes", False: "no"}[row.is_met],
        )  # fmt: skip
    CONSOLE.print(table)


def main() -> None:
    """Measures the networks that are named, or all."""
    names = list(dict.fromkeys(goal.network for goal in GOALS))
    parser = argparse.ArgumentParser(prog="python -m benchmarks.busy", description="Modelled time over roofline.")
    parser.add_argument("names", nargs="*", choices=[[], *names], metavar="NAME", help=", ".join(names))
    parser.add_argument("--chip", choices=CHIPS, help="only this one")
    options = parser.parse_args()
    wanted = [goal for goal in GOALS if not options.names or goal.network in options.names]
    show(list(measure(wanted, (options.chip,) if options.chip else CHIPS)))


if __name__ == "__main__":
    main()
