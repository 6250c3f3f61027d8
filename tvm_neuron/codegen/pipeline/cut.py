"""cut: one subgraph as a pipeline over several cores, cut where its slowest stage is quickest.

The first cut follows from what each kernel's instructions cost. Its stages are emitted and timed, which corrects the
costs, and so on while that still helps.
"""

from itertools import pairwise

from tvm_neuron.codegen.compile_stage import compile_stage, time_stage
from tvm_neuron.codegen.options import BuildOptions
from tvm_neuron.codegen.pipeline.balance import Cut, balance
from tvm_neuron.codegen.pipeline.borders import places, stages
from tvm_neuron.codegen.pipeline.estimate import estimate
from tvm_neuron.codegen.residents import place_stage
from tvm_neuron.codegen.stage import Stage
from tvm_neuron.errors import OptionError
from tvm_neuron.hw import Device, Instance, load_instance
from tvm_neuron.neff import Pipeline
from tvm_neuron.profile import limits_us
from tvm_neuron.sim import Timing

_ROUNDS = 8
_PATIENCE = 3  # rounds without a better cut
_REPLICAS = 4  # cores, at most, that take inputs in turn on one stage
_WORTH = 0.95  # of the interval: what that must gain, since weights lie in each of these cores


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
    cores = min(options.pipeline_cores, len(found) + 1)
    cuts, replicas = _Search(whole, device, options, instance, found).best(cores)
    made = tuple(compile_stage([stage], device, options, keep_weights=True) for stage in stages(whole, cuts))
    return Pipeline(whole.name, tuple(whole.inputs.values()), tuple(whole.outputs.values()), made, replicas)


class _Search:
    """Cuts that were tried, and the times of their stages."""

    def __init__(
        self, whole: Stage, device: Device, options: BuildOptions, instance: Instance, places: list[int]
    ) -> None:
        self.whole, self.device, self.options, self.instance, self.places = whole, device, options, instance, places
        self.guess = estimate(whole, place_stage(whole, device, keep_weights=False), device)
        self.timed: dict[tuple[int, int], Timing] = {}

    def best(self, cores: int) -> Cut:
        """The quickest cut; one where cores take inputs in turn on a stage only where that gains something."""
        plain, interval = self._rounds(cores, 1)
        shared, shorter = self._rounds(cores, _REPLICAS)
        return shared if shorter < _WORTH * interval else plain

    def _rounds(self, cores: int, most: int) -> tuple[Cut, float]:
        """The cut with the shortest interval between two inputs of those tried, and that."""
        tried: dict[Cut, float] = {}
        for number in range(_ROUNDS):
            self.options.on_stage(f"{self.whole.name}: balance {cores} cores, round {number + 1}")
            found = balance(self.guess.cost(), self.places, cores, most)
            if found in tried or (tried and not self.options.has_time()) or _is_settled(list(tried.values())):
                break
            tried[found] = self._interval_us(found)
        return min(tried.items(), key=lambda item: item[1])

    def _interval_us(self, found: Cut) -> float:
        """What a cut's interval is, which corrects the estimate."""
        cuts, replicas = found
        costs = self.guess.cost()
        bounds = list(pairwise([0, *cuts, len(self.whole.kernels)]))
        for bound, stage in zip(bounds, stages(self.whole, cuts), strict=True):
            if bound not in self.timed:
                self.timed[bound] = time_stage(stage, self.device)
            self.guess.correct(*bound, float(costs[bound]), self.timed[bound].total_ps)
        return max(limits_us(replicas, [self.timed[bound] for bound in bounds], self.instance).values())


def _is_settled(slowest: list[float]) -> bool:
    """Whether the last rounds gained nothing."""
    return len(slowest) > _PATIENCE and min(slowest[-_PATIENCE:]) >= min(slowest[:-_PATIENCE])
