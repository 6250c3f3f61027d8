"""Retreat: operators leave the NeuronCore since a part with them can't be compiled; as few as are soon found."""

import time
import traceback
from collections.abc import Callable
from dataclasses import replace

from tvm import relax

from tvm_neuron.codegen.defects import PartError, is_defect, listed, operators_of, reason_for_cpu
from tvm_neuron.codegen.legalise import legalise
from tvm_neuron.codegen.options import BuildOptions
from tvm_neuron.errors import UnschedulableError, internal_error, operator_of
from tvm_neuron.frontend.kernels import script
from tvm_neuron.hw import load_device
from tvm_neuron.partition import CanSchedule, Refusal
from tvm_neuron.schedule.graph import Graph

_MOST_FAILURES = 8  # after as many, all that is left runs on the CPU
_PATIENCE = 2  # times what the build took until it failed first, for finding out which operators are at fault
_LEAST_SECONDS = 20.0


class Retreat:
    """`reasons` says of each operator that has left, by name, why; `refuse_all` answers for all, once all have to.

    That an operator needs its neighbours' tensors in another layout, or more memory than they leave, is no defect;
    whatever else fails is one.
    """

    def __init__(self, options: BuildOptions) -> None:
        self.reasons: dict[str, str] = {}
        self.refuse_all: CanSchedule | None = None
        self._options = options
        self._begun, self._until = time.monotonic(), 0.0
        self._failures = 0

    def leave(self, failure: PartError) -> None:
        """Lets operators of a part leave, at least one that has not yet.

        Raises:
            CompileError: none may (`must_compile`) but those that are refused by name.
        """
        cause = failure.cause
        traceback.clear_frames(cause.__traceback__)  # of what may have failed for want of memory
        if not is_defect(cause):
            if self._options.must_compile and not operator_of(cause):
                raise cause
            names = self._at_fault(failure)
            reason = _beside_neighbours(cause)
            if isinstance(cause, UnschedulableError) and self._failures > 1:  # one often leaves the others a way
                self.reasons |= {other.operator: _beside_neighbours(other) for other in cause.others}
        else:
            operators = operators_of(failure.func)
            defect = internal_error(cause, failure.symbol)
            defect.part = script(failure.func)
            if self._options.must_compile:
                defect.args = (f"{defect}; its operators: {listed(operators)}",)
            names = [] if self._options.must_compile else self._at_fault(failure)
            reason = reason_for_cpu(defect, names or operators, self._options)
        self.reasons |= dict.fromkeys(names, reason)
        if not names or self._failures > _MOST_FAILURES:
            self._let_all_leave(reason)

    def leave_all(self, error: Exception) -> None:
        """Nothing is left to the NeuronCore: the model can't even be cut into parts.

        Raises:
            InternalError: that was so already, or no operator may leave (`must_compile`).
        """
        defect = internal_error(error, "the cut into parts")
        if self.refuse_all:
            raise defect
        self._let_all_leave(reason_for_cpu(defect, ["all operators"], self._options))

    def _let_all_leave(self, reason: str) -> None:
        self.refuse_all = lambda _call, _is_constant, _spans_of: Refusal(reason)

    def _at_fault(self, failure: PartError) -> list[str]:
        """Operators that have not left: the one that the failure names, else those found, else all of the part."""
        self._failures += 1
        now = time.monotonic()
        self._until = self._until or now + max(_LEAST_SECONDS, _PATIENCE * (now - self._begun))
        operators = [name for name in operators_of(failure.func) if name not in self.reasons]
        named = operator_of(failure.cause)
        if named in operators:
            return [named]
        try:
            found = _last_of_failing(failure.func, self._fails, self._has_time)
        except Exception:  # the part can't be taken apart either
            found = set()
        return [name for name in operators if name in found] or operators

    def _has_time(self) -> bool:
        return time.monotonic() < self._until and self._options.has_time()

    def _fails(self, graph: Graph) -> bool:
        from tvm_neuron.codegen import function  # here, since it brings all schedules with it

        silent = replace(self._options, on_stage=lambda _stage: None, optlevel=min(self._options.optlevel, 2))
        try:
            function.compile_pipeline(graph, "trial", load_device(silent.device), silent)
        except Exception:  # which of them is all that matters here: it is told with the part's own
            return True
        return False


def _beside_neighbours(cause: Exception) -> str:
    return f"beside its neighbours, {cause.reason if isinstance(cause, UnschedulableError) else cause}"


def _last_of_failing(func: relax.Function, fails: Callable[[Graph], bool], has_time: Callable[[], bool]) -> set[str]:
    """The last operator of the shortest beginning of a part that fails; with little time, some of which it is one."""
    names = [block.origin.name for block in legalise(func).blocks]
    passed, failed = 0, len(names)
    while failed - passed > 1 and has_time():
        middle = (passed + failed) // 2
        beginning = _beginning(func, middle)
        if beginning.outputs and fails(beginning):
            failed = middle
        else:
            passed = middle
    return set(names[passed:failed])


def _beginning(func: relax.Function, count: int) -> Graph:
    """The first blocks of a part; what others read or its caller takes of their results at run time are its outputs."""
    graph = legalise(func)
    blocks, rest = graph.blocks[:count], graph.blocks[count:]
    late = set(graph.inputs)
    for block in blocks:
        if not late.isdisjoint(block.sources()):
            late.add(block.output)
    wanted = {*graph.outputs, *(tensor for block in rest for tensor in block.sources())}
    read = {tensor for block in blocks for tensor in block.sources()}
    outputs = [t for t in dict.fromkeys(block.output for block in blocks) if t in late and t in wanted]
    for number, tensor in enumerate(outputs):
        tensor.kind, tensor.name = "output", f"output_{number}"
    return Graph([tensor for tensor in graph.inputs if tensor in read], outputs, blocks)
