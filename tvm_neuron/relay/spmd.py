"""build_spmd: the parts of a program for several devices, and their plan, as one library."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import tvm

from tvm_neuron import build as compiler
from tvm_neuron.codegen import byoc
from tvm_neuron.errors import OptionError
from tvm_neuron.frontend import Params
from tvm_neuron.hw import load_device, load_instance
from tvm_neuron.relay.build_module import TargetLike, wishes
from tvm_neuron.relay.factory import ExecutorFactory
from tvm_neuron.runtime import FACTORY_ENTRY, MANIFEST_ENTRY, VERSION, make_module, manifest
from tvm_neuron.runtime.contents import PLAN_ENTRY, part_name
from tvm_neuron.spmd import Plan, Run

Manifest = Mapping[str, Any]
Place = tuple[int, int] | None


def build_spmd(
    imported: Sequence[tuple[tvm.IRModule, Params]],
    plan: Plan,
    target: TargetLike | None = "neuron",
    *,
    options: compiler.BuildOptions | None = None,
) -> ExecutorFactory:
    """Compile each part once, for all cores; `imported` are the parts in the plan's order.

    Raises OptionError: the instance has fewer cores, or options are asked for that one core or one program has; and
    what `build` raises.
    """
    chosen, wanted = wishes(target, options)
    instance = load_instance(wanted.instance, load_device(wanted.device))
    if plan.cores > instance.cores:
        raise OptionError(
            f"the program is for {plan.cores} devices, and {instance.name} has {instance.cores} NeuronCores: lower it "
            "for a smaller mesh, or name a larger instance in BuildOptions(instance=...)"
        )
    if wanted.pipeline_cores > 1 or wanted.dynamic_batch:
        raise OptionError(
            "pipeline_cores and dynamic_batch are not for programs on several devices, whose cores and sizes their "
            "mesh decides: leave them out"
        )
    plan = replace(plan, instance=instance.name)
    executables = [
        compiler.build(mod, params, wanted, prefix=f"part{number}_") for number, (mod, params) in enumerate(imported)
    ]
    described = _manifest([manifest(executable) for executable in executables], plan, wanted)
    entries = {PLAN_ENTRY: plan.to_json().encode(), MANIFEST_ENTRY: byoc.encode_manifest(described)}
    root = make_module({FACTORY_ENTRY: b"default"} | entries)
    for executable in executables:
        root.import_module(executable.mod)
    first = imported[0][0] if imported else tvm.IRModule()  # of exchanges alone
    return ExecutorFactory(first, chosen, root, "default")


def _manifest(parts: Sequence[Manifest], plan: Plan, options: compiler.BuildOptions) -> dict[str, Any]:
    """That of the whole; `macs_moved` is the least of those of its parts."""
    order = [part_name(at, name) for at, part in enumerate(parts) for name in part["order"]]
    tensors = {
        key: [{"name": info.name, "shape": list(info.shape), "dtype": info.dtype} for info in getattr(plan, key)]
        for key in ("inputs", "outputs")
    }
    return {
        "compiler": f"tvm_neuron {VERSION}",
        "options": options.to_dict(),
        "device": options.device,
        "placement": [row for part in parts for row in part["placement"]],
        "subgraphs": [part_name(at, name) for at, part in enumerate(parts) for name in part["subgraphs"]],
        "macs_moved": min((part["macs_moved"] for part in parts if part["order"]), default=0.0),
        "order": order,
        "flow": _flow(parts, plan),
        **tensors,
    }


def _flow(parts: Sequence[Manifest], plan: Plan) -> dict[str, Any]:
    """Which step reads which tensor of which; what cores exchange counts as the tensor that it is made of."""
    places: dict[str, Place] = {info.name: (-1, number) for number, info in enumerate(plan.inputs)}
    steps: list[dict[str, Any]] = []
    for step in plan.steps:
        if not isinstance(step, Run):
            places[step.target] = places.get(step.source)
            continue
        flow, begin = parts[step.part]["flow"], len(steps)
        given = [places.get(name) for name in step.inputs]

        def place(found: Place, given: Sequence[Place] = given, begin: int = begin) -> Place:
            if found is None:
                return None
            number, index = found
            return given[index] if number < 0 else (begin + number, index)

        steps += [row | {"reads": [place(each) for each in row["reads"]]} for row in flow["steps"]]
        places |= dict(zip(step.outputs, map(place, flow["results"]), strict=True))
    return {"steps": steps, "results": [places.get(name) for name in plan.results]}
