"""What each step of a compile is worth: networks compiled without one step after the other, and their modelled times.

`python -m benchmarks.ablation [NAME...]`, of `benchmarks.busy` or of the catalogue's exported models (`--onnx`). What
is found is a JSON line each; what a file has already is not measured again. Nothing is run.

All are left out at once, then halves of them: those without which the time is the same to the picosecond change
nothing, and need no compile each.
"""

import argparse
import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest import mock

import onnx
from tvm import relax

from benchmarks import busy
from benchmarks.catalogue import records
from benchmarks.catalogue.__main__ import CHIPS, ONNX_FOLDER
from tvm_neuron import BuildOptions, relay
from tvm_neuron.build import placed
from tvm_neuron.codegen import compile_stage, simplify
from tvm_neuron.codegen.function import compile_pipeline
from tvm_neuron.codegen.legalise import legalise
from tvm_neuron.codegen.share import subgraphs
from tvm_neuron.codegen.steps import Alternative, Step, without
from tvm_neuron.errors import NeuronWarning
from tvm_neuron.hw import load_device
from tvm_neuron.sim import time_program
from tvm_neuron.sweep import lines

STEPS: tuple[Alternative, ...] = (*simplify.STEPS, *compile_stage.STEPS)
INSIDE: Mapping[str, tuple[str, Callable[..., object]]] = {
    "scale_weights": ("function.scale_weights", lambda kernels, *_: kernels),
    "corners": ("emit.weight_tiles.corners", lambda *_: None),
    "sums_on_the_way": ("emit.vector.total_of", lambda *_: None),
    "channel_values": ("kernels.row_folds.channel_values", lambda *_: set()),
    "pack_window": ("kernels.pack.pack_window", lambda *_: None),
    "functions": ("kernels.simplified.use_functions", lambda kernel: kernel),
    "maxima": ("kernels.simplified.use_maxima", lambda kernel: kernel),
    "truths": ("kernels.simplified.simplify_truths", lambda kernel: kernel),
    "slices": ("overlap.overlap.slice_tensors", lambda kernels, *_: (list(kernels), set())),
    "turns": ("tiles.run_in_tiles.in_turns", lambda *_: iter(())),
    "park": ("tiles.run_in_tiles.park", lambda *_: None),
    "less_for_weights": ("compile_stage.with_less_for_weights", lambda *_: None),
}
"""What steps do inside: the function that does it, in `tvm_neuron.codegen`, and what stands in for it."""
LEAST = 0.005  # of a network's time: what changes it less is no effect
QUICK = (
    "resnet50 x1", "mobilenet_v2 x1", "bert_base x1", "bert_base x3", "densenet121 x1", "efficientnet_b0 x1",
    "transformers-albert", "transformers-starcoder2_step", "transformers-convbert", "transformers-blenderbot",
    "timm-skresnet18", "timm-mobilenetv3_small_050", "timm-nest_tiny", "timm-swiftformer_xs",
    "torchvision-regnet_y_400mf",
)  # fmt: skip
_WATCHED = {f"{goal.network} x{goal.batch}": goal for goal in busy.GOALS}


def main() -> None:
    """Measures what the file lacks, then prints the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ablation", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(_WATCHED)}, or a folder of --onnx")
    parser.add_argument("--chip", choices=CHIPS, help="only this one")
    parser.add_argument("--steps", nargs="+", metavar="STEP", help="only these; a+b leaves out both")
    parser.add_argument("--json", type=Path, default=Path("build/ablation.jsonl"), metavar="FILE", help="%(default)s")
    parser.add_argument("--onnx", type=Path, default=ONNX_FOLDER, metavar="FOLDER", help="models: %(default)s")
    options = parser.parse_args()
    steps = options.steps or [*(step.name for step in STEPS if not _is_needed(step)), *INSIDE]
    unknown = {name for step in steps for name in step.split("+")} - {*(step.name for step in STEPS), *INSIDE}
    if unknown:
        raise SystemExit(f"no such steps: {', '.join(sorted(unknown))}")
    for name in options.names or QUICK:
        for chip in (options.chip,) if options.chip else CHIPS:
            _measure(name, chip, steps, options.onnx, options.json)
    print(table(list(records.load(options.json).values())))


def _measure(network: str, chip: str, steps: Sequence[str], folder: Path, file: Path) -> None:
    """A line for the whole compile, and one without each of the steps."""
    known = records.load(file)
    missing = [step for step in steps if _name(network, chip, step) not in known]
    whole = known.get(_name(network, chip, ""))
    if whole is not None and not missing:
        return
    functions = _functions(network, chip, folder)
    if whole is None:
        whole = _without([], functions, chip)
        _append(file, network, chip, "", whole)
    halves = [missing] if missing else []
    while halves:
        some = halves.pop()
        found = _without(some, functions, chip)
        if len(some) == 1 or found.get("latency_us") == whole.get("latency_us"):
            for step in some:
                _append(file, network, chip, step, found)
        else:
            halves += [some[len(some) // 2 :], some[: len(some) // 2]]


def _without(steps: Sequence[str], functions: Sequence[relax.Function], chip: str) -> records.Record:
    """The time without these steps, or why there is none, and the processor time that it took to find."""
    begin, found = time.process_time(), records.Record()
    try:
        with _left_out([name for step in steps for name in step.split("+")]):
            found["latency_us"] = latency_us(functions, chip)
    except Exception as error:  # a step that is needed after all
        found["message"] = f"{type(error).__name__}: {error}"
    return found | {"seconds": time.process_time() - begin}


@contextmanager
def _left_out(names: Sequence[str]) -> Iterator[None]:
    with ExitStack() as stack:
        stack.enter_context(without(*(name for name in names if name not in INSIDE)))
        for target, stand_in in (INSIDE[name] for name in names if name in INSIDE):
            stack.enter_context(mock.patch(f"tvm_neuron.codegen.{target}", stand_in))
        yield


def _append(file: Path, network: str, chip: str, step: str, found: records.Record) -> None:
    record = {"name": _name(network, chip, step), "network": network, "chip": chip, "step": step, **found}
    lines.append(file, record)
    print(record["name"], record.get("latency_us", record.get("message")), flush=True)


def _name(network: str, chip: str, step: str) -> str:
    return f"{network}, {chip}, {f'without {step}' if step else 'whole'}"


def _functions(network: str, chip: str, folder: Path) -> list[relax.Function]:
    """The parts of a network for the NeuronCore."""
    if network in _WATCHED:
        model = _WATCHED[network].make()
    else:
        file = next(folder.glob(f"{network}/*/model.onnx"), None)
        if file is None:
            raise SystemExit(f"there is no {folder}/{network}/*/model.onnx: python -m benchmarks.catalogue {network}")
        model = onnx.load(file)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NeuronWarning)
        mod, params = relay.frontend.from_onnx(model)
        return subgraphs(placed(mod, params, BuildOptions(device=f"neuron/{chip}")).mod)


def latency_us(functions: Sequence[relax.Function], chip: str) -> float:
    """The modelled time of all parts."""
    options, device = BuildOptions(device=f"neuron/{chip}"), load_device(chip)
    made = [compile_pipeline(legalise(func), f"part_{n}", device, options) for n, func in enumerate(functions)]
    return sum(time_program(core.program, device).total_ps for pipeline in made for core in pipeline.cores) / 1e6


def _is_needed(step: Alternative) -> bool:
    return isinstance(step, Step) and step.is_needed


def table(found: Sequence[records.Record]) -> str:
    """A row for each step: what changes without it, and why it stands where it stands."""
    whole = {(each["network"], each["chip"]): each["latency_us"] for each in found if each.get("step") == ""}
    measured = list(dict.fromkeys(each["step"] for each in found if each.get("step")))
    lines = ["| step | networks | slower without | quicker without | fails without | why there |"]
    lines.append("| --- | ---: | --- | --- | --- | --- |")
    whys = {step.name: (f"needed; {step.why}" if _is_needed(step) else step.why) for step in STEPS}
    whys |= {name: f"in {target}" for name, (target, _) in INSIDE.items()}
    for step in dict.fromkeys([*whys, *measured]):
        rows = [each for each in found if each.get("step") == step and (each["network"], each["chip"]) in whole]
        changes = {
            f"{each['network']} {each['chip']}": each["latency_us"] / whole[each["network"], each["chip"]] - 1
            for each in rows
            if "latency_us" in each
        }
        fails = [f"{each['network']} {each['chip']}" for each in rows if "message" in each]
        networks = {name.rpartition(" ")[0] for name, change in changes.items() if abs(change) > LEAST}
        count = str(len(networks)) if rows else ""
        cells = (step, count, _cell(changes, 1), _cell(changes, -1), ", ".join(fails), whys.get(step, ""))
        lines.append(f"| {' | '.join(cells)} |")
    lines.append(f"{len(whole)} compiles; networks that change by more than {LEAST:.1%} on either chip")
    return "\n".join(lines)


def _cell(changes: dict[str, float], sign: int) -> str:
    """The mean change of those that change so, and the largest."""
    chosen = {name: change for name, change in changes.items() if sign * change > LEAST}
    if not chosen:
        return ""
    mean = math.exp(sum(map(math.log1p, chosen.values())) / len(chosen)) - 1
    most = max(chosen, key=lambda name: abs(chosen[name]))
    return f"{len(chosen)}: mean {mean:+.1%}, most {chosen[most]:+.1%} ({most})"


if __name__ == "__main__":
    main()
