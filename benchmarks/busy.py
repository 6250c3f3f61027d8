"""How busy the modelled core is: modelled time over the roofline of one core, beside what is to be reached.

`python -m benchmarks.busy [NAME...] [--chip CHIP]`. Nothing is run: the time of a program doesn't depend on its data.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import onnx

import tvm_neuron
from benchmarks.row import Bar, Row
from benchmarks.table import show
from tests.models.zoo import NETWORKS
from tests.models.zoo.encoders import bert, vit
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


GOALS = (
    Goal("resnet50", 1, partial(light_network, "resnet50"), (1.2, 2.5)),
    Goal("resnet50", 8, partial(light_network, "resnet50", batch=8), (1.4, 1.8)),
    Goal("vgg16", 1, NETWORKS["vgg16"], (1.4, 1.8)),
    Goal("yolov4_608", 1, partial(NETWORKS["yolov4"], 608), (1.4, 1.8)),
    Goal("mobilenet_v2", 1, NETWORKS["mobilenet_v2"], (2.5, 3.5)),
    Goal("densenet121", 1, partial(light_network, "densenet121"), (2.5, 3.5)),
    Goal("efficientnet_b0", 1, NETWORKS["efficientnet_b0"], (2.5, 3.5)),
    Goal("bert_base", 1, bert, (1.05, 1.3)),
    Goal("bert_base", 3, partial(bert, 3), (1.1, 1.4)),
    Goal("bert_base", 6, partial(bert, 6), (1.2, 1.4)),
    Goal("bert_large", 8, partial(bert, 8, hidden=1024, heads=16, layers=24), (1.2, 1.4)),
    Goal("vit_b16", 1, vit, (1.4, 1.8)),
    Goal("unet", 1, NETWORKS["unet"], (None, None)),
)


def measure(goal: Goal, chip: str) -> list[Row]:
    """A network compiled for a chip; times are sums over its parts on the NeuronCore."""
    mod, params = relay.frontend.from_onnx(goal.make())
    report = tvm_neuron.report(relay.build(mod, target=f"neuron/{chip}", params=params))
    limit = goal.ratios[CHIPS.index(chip)]
    row = Row(
        what=f"{goal.network}, batch {goal.batch}, on {chip}, {report.dram_bytes / 1e6:,.1f} MB moved", unit="us",
        samples=(report.latency_us,), peer="roofline", peer_samples=(report.roofline_us,),
        bar=None if limit is None else Bar(limit, is_ratio=True),
    )  # fmt: skip
    return [row]


def main() -> None:
    """Measures the networks that are named, or all."""
    names = list(dict.fromkeys(goal.network for goal in GOALS))
    parser = argparse.ArgumentParser(prog="python -m benchmarks.busy", description="Modelled time over roofline.")
    parser.add_argument("names", nargs="*", choices=[[], *names], metavar="NAME", help=", ".join(names))
    parser.add_argument("--chip", choices=CHIPS, help="only this one")
    options = parser.parse_args()
    wanted = [goal for goal in GOALS if not options.names or goal.network in options.names]
    chips = (options.chip,) if options.chip else CHIPS
    show([row for goal in wanted for chip in chips for row in measure(goal, chip)])


if __name__ == "__main__":
    main()
