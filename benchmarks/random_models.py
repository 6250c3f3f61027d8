"""Random models for target="neuron": how many are right, refused, wrong, internal errors, crashes or hang.

`python -m benchmarks.random_models --count 2000 --chip inf2 --jsonl found.jsonl`: processes take some models each.
"""

import argparse
import json
import resource
import time
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, cast

from onnx import printer
from rich.console import Console
from rich.table import Table

from tests.random_models.judge import Outcome, judge
from tests.random_models.model import RandomModel, random_model
from tests.random_models.shrink import shrunk

_FORK = get_context("fork")  # what was imported need not be imported again; TVM has started no threads here
_AT_ONCE = 25
"""Models of a process: starting one takes as long as half a model."""
_BAD = ("wrong", "internal", "crashed", "hanging")


class Child:
    """A process that judges the models of some seeds, or one model, one after the other."""

    def __init__(self, seeds: Iterable[int], arguments: argparse.Namespace, model: RandomModel | None = None) -> None:
        self.seeds = deque(seeds)  # the first is at work
        self.begin = time.monotonic()
        self.results, there = _FORK.Pipe(duplex=False)
        given = (tuple(self.seeds), model, arguments.chip, arguments.memory_gb, there)
        self.process = _FORK.Process(target=_work, args=given)
        self.process.start()
        there.close()

    def outcome(self, seconds: float) -> Outcome | None:
        """How the first went; nothing while it runs and has time left."""
        if self.results.poll():
            try:
                return cast(Outcome, self.results.recv())
            except EOFError:
                self.process.join()
                return Outcome("crashed", f"the process ended with {self.process.exitcode}")
        return Outcome("hanging", f"more than {seconds:.0f} s") if self.age() > seconds else None

    def age(self) -> float:
        """For how many seconds the first is at work."""
        return time.monotonic() - self.begin

    def end(self) -> None:
        """Whatever it is at."""
        self.process.kill()
        self.process.join()
        self.results.close()


def _work(seeds: Sequence[int], model: RandomModel | None, chip: str, memory_gb: float, results: Connection) -> None:
    limit = int(memory_gb * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    for seed in seeds:
        results.send(judge(model or random_model(seed), chip))


def run(seeds: Iterable[int], arguments: argparse.Namespace) -> Iterator[tuple[int, Outcome, float]]:
    """What becomes of the models of `seeds`, each with the seconds that it took; `arguments.jobs` at the same time."""
    waiting, children = deque(seeds), list[Child]()
    while waiting or children:
        while len(children) < arguments.jobs and waiting:
            children.append(Child([waiting.popleft() for _ in range(min(_AT_ONCE, len(waiting)))], arguments))
        wait([child.results for child in children], timeout=1.0)
        for child in list(children):
            if (found := child.outcome(arguments.seconds)) is None:
                continue
            yield child.seeds.popleft(), found, child.age()
            child.begin = time.monotonic()
            if found.result in _BAD or not child.seeds:  # what failed may have left something behind
                waiting.extendleft(reversed(child.seeds))
                children.remove(child)
                child.end()


def smallest(seed: int, found: Outcome, arguments: argparse.Namespace) -> RandomModel:
    """The smallest model found that fails as that of the seed does."""

    def fails(model: RandomModel) -> bool:
        child = Child([seed], arguments, model)
        while (outcome := child.outcome(arguments.seconds)) is None:
            wait([child.results], timeout=1.0)
        child.end()
        return outcome.result == found.result and (found.result != "internal" or outcome.group == found.group)

    return shrunk(random_model(seed), fails)


def _known(path: Path | None, chip: str) -> dict[int, tuple[Outcome, float]]:
    """What an earlier run wrote."""
    if path is None or not path.exists():
        return {}
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    mine = [row for row in rows if row.pop("chip") == chip]
    return {
        row.pop("seed"): (Outcome(**{k: v for k, v in row.items() if k != "seconds"}), row["seconds"]) for row in mine
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="how many models (200)")
    parser.add_argument("--seed", type=int, default=0, help="the first seed (0)")
    parser.add_argument("--chip", default="inf1", help="inf1 (default), inf2, trn1, trn2")
    parser.add_argument("--jobs", type=int, default=1, help="models at the same time (1)")
    parser.add_argument("--seconds", type=float, default=120.0, help="most for one model (120)")
    parser.add_argument("--memory-gb", type=float, default=16.0, help="most address space for one model (16)")
    parser.add_argument("--jsonl", type=Path, help="append every outcome to this file")
    parser.add_argument("--resume", action="store_true", help="take over what the file has already")
    parser.add_argument("--no-shrink", action="store_true", help="don't look for smaller models that fail alike")
    return parser.parse_args()


def main() -> None:
    """Runs, prints what was found and a table."""
    arguments, console = _arguments(), Console()
    begin = time.perf_counter()
    found = _known(arguments.jsonl, arguments.chip) if arguments.resume else {}
    wanted = range(arguments.seed, arguments.seed + arguments.count)
    for seed, outcome, seconds in run((seed for seed in wanted if seed not in found), arguments):
        found[seed] = outcome, seconds
        if arguments.jsonl:
            row = {"seed": seed, "chip": arguments.chip, "seconds": round(seconds, 2), **asdict(outcome)}
            with arguments.jsonl.open("a") as file:
                file.write(json.dumps(row) + "\n")
        if outcome.result in _BAD:
            console.print(f"{outcome.result}: seed {seed}: {outcome.reason}", highlight=False, markup=False)
    outcomes = {seed: found[seed][0] for seed in wanted if seed in found}
    _print_groups(outcomes, arguments, console)
    _print_table(outcomes, arguments.chip, console)
    console.print(f"{time.perf_counter() - begin:.0f} s")


def _print_groups(outcomes: dict[int, Outcome], arguments: argparse.Namespace, console: Console) -> None:
    """Every way to fail with its seeds and a small model that fails so."""
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for seed, outcome in outcomes.items():
        if outcome.result in _BAD:
            groups[outcome.result, outcome.group if outcome.result == "internal" else str(seed)].append(seed)
        elif outcome.result == "refused":
            groups[outcome.result, outcome.group].append(seed)
    for (result, group), seeds in sorted(groups.items(), key=lambda item: -len(item[1])):
        console.print(f"\n{len(seeds)} {result}: {group}: seeds {seeds[:8]}", highlight=False, markup=False)
        if result in _BAD and not arguments.no_shrink:
            least = min(seeds, key=lambda seed: len(random_model(seed).nodes))
            small = smallest(least, outcomes[least], arguments)
            text = printer.to_text(_without_numbers(small))
            console.print(f"seed {least}, fp32_cast={small.mode}:\n{text}", highlight=False, markup=False)


def _without_numbers(model: RandomModel) -> Any:
    """The model for reading: large initializers are cut away."""
    proto = model.proto()
    for tensor in proto.graph.initializer:
        if len(tensor.raw_data) > 64:
            tensor.ClearField("raw_data")
    return proto


def _print_table(outcomes: dict[int, Outcome], chip: str, console: Console) -> None:
    counts = Counter(outcome.result for outcome in outcomes.values())
    table = Table("result", "models", title=f"{len(outcomes)} random models on {chip}")
    for result in ("passed", "refused", *_BAD):
        table.add_row(result, str(counts[result]))
    on_core, on_cpu = (sum(getattr(outcome, name) for outcome in outcomes.values()) for name in ("on_core", "on_cpu"))
    table.caption = f"operators: {on_core} on the core, {on_cpu} on the CPU"
    console.print(table)


if __name__ == "__main__":
    main()
