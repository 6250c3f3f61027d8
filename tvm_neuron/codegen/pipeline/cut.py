"""cut: one subgraph as a pipeline over several cores, cut where its slowest stage is quickest.

The first cut follows from what each kernel's instructions cost. Its stages are compiled and timed, which corrects the
costs, and so on while that still helps.
"""

from dataclasses import dataclass, field
from itertools import pairwise

from tvm_neuron.codegen.compile_stage import compile_stage
from tvm_neuron.codegen.options import BuildOptions
from tvm_neuron.codegen.pipeline.balance import balance
from tvm_neuron.codegen.pipeline.borders import places, stages
from tvm_neuron.codegen.pipeline.estimate import estimate
from tvm_neuron.codegen.residents import place_stage
from tvm_neuron.codegen.stage import Stage
from tvm_neuron.errors import OptionError
from tvm_neuron.hw import Device, Instance, load_instance
from tvm_neuron.neff import Neff, Pipeline
from tvm_neuron.profile.pipeline import PipelineUse, pipeline_use
from tvm_neuron.sim import Timing, time_program

_ROUNDS = 8
_PATIENCE = 3  # rounds without a better cut


def cut(whole: Stage, device: Device, options: BuildOptions) -> Pipeline:
    """The pipeline of `options.pipeline_cores` cores.

    Raises:
        OptionError: the instance has fewer cores, or there are not that many places to cut at.
        CompileError: see `compile_stage`.
    """
    instance = load_instance(options.instance, device)
    found = places(whole.kernels)
    _check(whole, options.pipeline_cores, len(found) + 1, instance)
    guess = estimate(whole, place_stage(whole, device, keep_weights=False), device)
    tries = _Tries(whole, device, options, instance)
    best: _Try | None = None
    last_gain = 0
    for number in range(_ROUNDS):
        costs = guess.cost()
        cuts = tuple(balance(costs, found, options.pipeline_cores))
        if cuts in tries.seen or number - last_gain > _PATIENCE:
            break
        tried = tries.make(cuts)
        if best is None or tried.use.interval_us < best.use.interval_us:
            best, last_gain = tried, number
        for (start, end), timing in zip(pairwise([0, *cuts, len(whole.kernels)]), tried.timings, strict=True):
            guess.correct(start, end, float(costs[start, end]), timing.total_ps)
    assert best
    return best.pipeline


@dataclass(frozen=True)
class _Try:
    pipeline: Pipeline
    timings: list[Timing]
    use: PipelineUse


@dataclass
class _Tries:
    """Compiles and times cuts, each stage once."""

    whole: Stage
    device: Device
    options: BuildOptions
    instance: Instance
    seen: dict[tuple[int, ...], _Try] = field(default_factory=dict)

    def make(self, cuts: tuple[int, ...]) -> _Try:
        """The pipeline cut there."""
        cores: list[Neff] = [
            compile_stage(stage, self.device, self.options, keep_weights=True) for stage in stages(self.whole, cuts)
        ]
        inputs, outputs = tuple(self.whole.inputs.values()), tuple(self.whole.outputs.values())
        pipeline = Pipeline(self.whole.name, inputs, outputs, tuple(cores))
        timings = [time_program(core.program, self.device) for core in cores]
        self.seen[cuts] = _Try(pipeline, timings, pipeline_use(pipeline, timings, self.instance))
        return self.seen[cuts]


def _check(whole: Stage, cores: int, most: int, instance: Instance) -> None:
    if cores > instance.cores:
        raise OptionError(
            f"pipeline_cores is {cores}; {instance.name} has {instance.cores} NeuronCores: ask for at most that many, "
            "or name a larger instance"
        )
    if cores > most:
        raise OptionError(
            f"pipeline_cores is {cores}; {whole.name} becomes {len(whole.kernels)} kernels and can be cut into at most "
            f"{most} stages: ask for at most that many"
        )
