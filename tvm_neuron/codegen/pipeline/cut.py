"""cut: one subgraph as a pipeline over several cores, cut where its slowest stage is quickest.

The first cut follows from what each kernel's instructions cost. Its stages are emitted and timed, which corrects the
costs, and so on while that still helps.
"""

from itertools import pairwise

from tvm_neuron.codegen.compile_stage import compile_stage, time_stage
from tvm_neuron.codegen.options import BuildOptions
from tvm_neuron.codegen.pipeline.balance import balance
from tvm_neuron.codegen.pipeline.borders import places, stages
from tvm_neuron.codegen.pipeline.estimate import estimate
from tvm_neuron.codegen.residents import place_stage
from tvm_neuron.codegen.stage import Stage
from tvm_neuron.errors import OptionError
from tvm_neuron.hw import Device, load_instance
from tvm_neuron.neff import Pipeline

_ROUNDS = 8
_PATIENCE = 3  # rounds without a better cut


def cut(whole: Stage, device: Device, options: BuildOptions) -> Pipeline:
    """The pipeline of `options.pipeline_cores` cores, or of as many as there are places to cut at.

    Raises:
        OptionError: the instance has fewer cores.
        CompileError: see `compile_stage`.
    """
    instance = load_instance(options.instance, device)
    if options.pipeline_cores > instance.cores:
        raise OptionError(
            f"pipeline_cores is {options.pipeline_cores}; {instance.name} has {instance.cores} NeuronCores: ask for at "
            "most that many, or name a larger instance"
        )
    found = places(whole.kernels)
    cuts = _search(whole, device, options, found, min(options.pipeline_cores, len(found) + 1))
    cores = tuple(compile_stage(stage, device, options, keep_weights=True) for stage in stages(whole, cuts))
    return Pipeline(whole.name, tuple(whole.inputs.values()), tuple(whole.outputs.values()), cores)


def _search(whole: Stage, device: Device, options: BuildOptions, found: list[int], cores: int) -> list[int]:
    """The cuts whose slowest stage is quickest, of those tried."""
    guess = estimate(whole, place_stage(whole, device, keep_weights=False), device)
    tried: dict[tuple[int, ...], int] = {}
    timed: dict[tuple[int, int], int] = {}
    for number in range(_ROUNDS):
        options.on_stage(f"{whole.name}: balance {cores} cores, round {number + 1}")
        costs = guess.cost()
        cuts = balance(costs, found, cores)
        if tuple(cuts) in tried or (tried and not options.has_time()) or _is_settled(list(tried.values())):
            break
        bounds = list(pairwise([0, *cuts, len(whole.kernels)]))
        for bound, stage in zip(bounds, stages(whole, cuts), strict=True):
            if bound not in timed:
                timed[bound] = time_stage(stage, device)
            guess.correct(*bound, float(costs[bound]), timed[bound])
        tried[tuple(cuts)] = max(timed[bound] for bound in bounds)
    best, _ = min(tried.items(), key=lambda item: item[1])
    return list(best)


def _is_settled(slowest: list[int]) -> bool:
    """Whether the last rounds gained nothing."""
    return len(slowest) > _PATIENCE and min(slowest[-_PATIENCE:]) >= min(slowest[:-_PATIENCE])
