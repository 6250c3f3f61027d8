"""NeuronCore Pipeline on two modelled chips, as a Markdown table: `python -m benchmarks.pipeline [--publish]`.

ResNet-50 with random weights, and an encoder of BERT-base's size: 12 layers of 768 on 128 rows.
Every count runs on the hardware model and gives the bits of one core. `--publish` writes into docs/pipeline.md.
"""

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import onnx

from benchmarks import row as table
from benchmarks.publish import replace_table
from tests.codegen.transformers import Encoder
from tests.models.agreement import random_inputs
from tests.onnx_models import Arrays
from tvm_neuron import hw, neff, relay, runtime
from tvm_neuron.build import BuildOptions
from tvm_neuron.frontend.sample_models import light_network
from tvm_neuron.hw import load_instance
from tvm_neuron.isa.dtypes import DTYPES
from tvm_neuron.neff import Pipeline
from tvm_neuron.profile.pipeline import PipelineUse, pipeline_use
from tvm_neuron.sim import Cores, time_program

CHIPS = ("inf1", "inf2")
COUNTS = (1, 2, 4, 8, 16)
_TIMED_COUNTS, _OF_LINEAR = (4, 16), 0.8  # by `python -m benchmarks`; the bar is where all weights stay in SBUF
HEAD = (
    "network", "chip", "cores", "inputs/s", "of linear", "of cached", "weights kept", "latency us", "slowest core us",
    "mean us", "limit", "loaded in us",
)  # fmt: skip
_LEFT = 2  # columns of text before those of numbers


@dataclass(frozen=True)
class Row:
    """A network on so many cores of a chip."""

    network: str
    chip: str
    use: PipelineUse
    of_linear: float
    of_cached: float

    def cells(self) -> tuple[str, ...]:
        """What the table says of it."""
        use = self.use
        kept, streamed = (sum(getattr(s, name) for s in use.stages) for name in ("kept_bytes", "streamed_bytes"))
        times = [stage.latency_us / stage.replicas for stage in use.stages for _ in range(stage.replicas)]
        share = "all" if not streamed else f"{kept / (kept + streamed):.0%}"
        return (
            self.network, self.chip, str(use.cores), f"{use.inputs_per_second:,.0f}", f"{self.of_linear:.0%}",
            f"{self.of_cached:.0%}", share, f"{use.latency_us:,.0f}", f"{max(times):,.0f}",
            f"{sum(times) / len(times):,.0f}", use.limit, f"{use.load_us:,.0f}",
        )  # fmt: skip


def networks() -> dict[str, Callable[[], tuple[onnx.ModelProto, Arrays]]]:
    """How each network and an input of it is made."""
    return {"ResNet-50": _resnet, "BERT-base": _bert}


def measure(names: Sequence[str], chips: Sequence[str], counts: Sequence[int]) -> Iterator[Row]:
    """Each network on each chip and number of cores; linear is the first count, and a core on which all weights stay.

    Raises:
        ValueError: some count gives other bits than the first.
    """
    for name in names:
        model, inputs = networks()[name]()
        for chip in chips:
            wanted: list[bytes] | None = None
            rate, ideal = 0.0, 1e6 / cached_us(model, chip)
            for count in counts:
                pipeline = _compiled(model, chip, count)
                bits = _bits(pipeline, inputs)
                if wanted is not None and bits != wanted:
                    raise ValueError(f"{name} on {count} cores of {chip} gives other numbers than on {counts[0]}")
                timings = [time_program(core.program, core.device) for core in pipeline.cores]
                use = pipeline_use(pipeline, timings, load_instance("", pipeline.cores[0].device))
                wanted, rate = bits, rate or use.inputs_per_second / count
                each = use.inputs_per_second / count
                yield Row(name, chip, use, each / rate, each / ideal)


def cached_weights() -> list[table.Row]:
    """How many of ResNet-50's weights stay on the cores of inf1, of which AWS says: all on 8 cores, not all on 4."""
    model, _ = networks()["ResNet-50"]()
    found = []
    for count, kind in ((4, table.Kind.MOST), (8, table.Kind.LEAST)):
        pipeline = _compiled(model, "inf1", count)
        timings = [time_program(core.program, core.device) for core in pipeline.cores]
        stages = pipeline_use(pipeline, timings, load_instance("", pipeline.cores[0].device)).stages
        kept, streamed = (sum(getattr(s, name) for s in stages) for name in ("kept_bytes", "streamed_bytes"))
        share = 100 * kept / (kept + streamed)
        limit = 100 if kind is table.Kind.LEAST else 99
        what = f"ResNet-50's weights that stay cached on {count} cores of inf1 (AWS: {'' if count == 8 else 'not '}all)"
        found.append(table.Row(what=what, unit="%", samples=(share,), bar=table.Bar(limit, kind=kind)))
    return found


def cached_us(model: onnx.ModelProto, chip: str) -> float:
    """What one core would take whose SBUF held all weights: the chip's with 16 times the memory, which there is not."""
    numbers = json.loads((Path(hw.__file__).parent / "chips" / f"{chip}.json").read_text())
    size = 16 * numbers["sbuf_bytes_per_partition"]["value"]
    numbers |= {"name": f"{chip}-large", "sbuf_bytes_per_partition": {"value": size, "source": "16 times the chip's"}}
    mod, params = relay.frontend.from_onnx(model)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "device.json"
        path.write_text(json.dumps(numbers))
        target = {"tag": f"neuron/{chip}", "device": str(path)}
        library = relay.build(mod, target, params=params, options=BuildOptions(static_weights=True))
    (data,) = runtime.neffs(library).values()
    core = neff.read(data)
    return time_program(core.program, core.device).latency_us


def rows(name: str, chip: str) -> list[table.Row]:
    """Throughput on some numbers of cores beside that of as many single ones."""
    one, *several = measure([name], [chip], (1, *_TIMED_COUNTS))
    bar = table.Bar(_OF_LINEAR, is_ratio=True, kind=table.Kind.LEAST)
    return [
        table.Row(
            what=f"{name} on {count} cores of {chip}", unit="inputs/s", samples=(found.use.inputs_per_second,),
            peer="so many times one core", peer_samples=(count * one.use.inputs_per_second,),
            bar=None if any(stage.streamed_bytes for stage in found.use.stages) else bar,
        )
        for count, found in zip(_TIMED_COUNTS, several, strict=True)
    ]  # fmt: skip


def markdown(rows: Sequence[Row]) -> str:
    """The table."""
    rule = ["---" if i < _LEFT or HEAD[i] == "limit" else "---:" for i in range(len(HEAD))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (HEAD, rule, *(row.cells() for row in rows)))


def main() -> None:
    """Measures, prints each row as it comes, publishes if asked to."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pipeline", description="Measure pipelines.")
    parser.add_argument("names", nargs="*", choices=[[], *networks()], metavar="NAME", help=", ".join(networks()))
    parser.add_argument("--chips", nargs="+", choices=CHIPS, default=CHIPS)
    parser.add_argument("--cores", nargs="+", type=int, default=COUNTS, metavar="N")
    parser.add_argument("--publish", action="store_true", help="write the table into docs/pipeline.md")
    options = parser.parse_args()
    rows = []
    for row in measure(options.names or list(networks()), options.chips, options.cores):
        rows.append(row)
        print(" | ".join(row.cells()), flush=True)
    if options.publish:
        replace_table("docs/pipeline.md", "pipelines", markdown(rows))


def _compiled(model: onnx.ModelProto, chip: str, cores: int) -> Pipeline:
    mod, params = relay.frontend.from_onnx(model)
    library = relay.build(mod, f"neuron/{chip}", params=params, options=BuildOptions(pipeline_cores=cores))
    (data,) = runtime.neffs(library).values()
    return neff.read_pipeline(data)


def _bits(pipeline: Pipeline, inputs: Arrays) -> list[bytes]:
    cores = Cores(pipeline)
    given = {name: array.astype(DTYPES[cores.inputs[name].dtype]) for name, array in inputs.items()}
    return [array.tobytes() for array in cores.run(given).values()]


def _resnet() -> tuple[onnx.ModelProto, Arrays]:
    model = light_network("resnet50")
    return model, random_inputs(model)


def _bert() -> tuple[onnx.ModelProto, Arrays]:
    encoder = Encoder(hidden=768, heads=12, rows=128, layers=12)
    return encoder.model(), encoder.inputs()


if __name__ == "__main__":
    main()
