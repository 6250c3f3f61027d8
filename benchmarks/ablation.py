"""What each step of a compile is worth: networks compiled without one step after the other, and their modelled times.

`python -m benchmarks.ablation [NAME...]`, of `benchmarks.busy` or of the catalogue's exported models (`--onnx`). What
is found is a JSON line each; what a file has already is not measured again. Nothing is run.
"""

import argparse
import math
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

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
    steps = options.steps or [step.name for step in STEPS if not _is_needed(step)]
    unknown = {name for step in steps for name in step.split("+")} - {step.name for step in STEPS}
    if unknown:
        raise SystemExit(f"no such steps: {', '.join(sorted(unknown))}")
    for name in options.names or QUICK:
        for chip in (options.chip,) if options.chip else CHIPS:
            _measure(name, chip, steps, options.onnx, options.json)
    print(table(list(records.load(options.json).values())))


def _measure(network: str, chip: str, steps: Sequence[str], folder: Path, file: Path) -> None:
    """A line for the whole compile, and one without each of the steps."""
    known = records.load(file)
    missing = [step for step in ("", *steps) if _name(network, chip, step) not in known]
    functions = _functions(network, chip, folder) if missing else []
    for step in missing:
        record: records.Record = {"name": _name(network, chip, step), "network": network, "chip": chip, "step": step}
        begin = time.process_time()
        try:
            with without(*step.split("+")):
                record["latency_us"] = latency_us(functions, chip)
        except Exception as error:  # a step that is needed after all
            record["message"] = f"{type(error).__name__}: {error}"
        lines.append(file, record | {"seconds": time.process_time() - begin})
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
