"""`python -m benchmarks.catalogue [NAME...]`: networks of every family, each measured in a process of its own.

Models are exported when they are first needed and kept in a folder; with all of them there, neither torch nor a package
of networks is needed. Results are JSON lines, and what a file has already is not measured again.
"""

import argparse
import random
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks import machine
from benchmarks.catalogue import compare, records, table
from benchmarks.catalogue.apart import preload, run_apart
from benchmarks.catalogue.entry import Entry
from benchmarks.catalogue.export import EXPORTERS, FAILED, MODEL, export
from benchmarks.catalogue.measure import Job, measure
from benchmarks.catalogue.of_timm import drawn
from benchmarks.catalogue.sources import ONNX_FOLDER, entries
from benchmarks.publish import replace_table
from tvm_neuron import jobs
from tvm_neuron.sweep import lines

CHIPS = ("inf1", "inf2")
_IMPORTS = ("tvm_neuron.relay", "tvm_neuron.codegen.function", "benchmarks.catalogue.measure")


def main() -> None:
    """Measures, compares two files, or publishes."""
    options = _parser().parse_args()
    if options.compare:
        print(compare.comparison(*map(records.load, options.compare)))
        return
    if options.publish:
        files = [records.load(file) for file in options.publish]
        replace_table("docs/catalogue.md", "catalogue", table.markdown(files))
        return
    chosen = drawn(options.draw, options.seed) if options.draw else _choose(entries(options.onnx), options)
    if options.list:
        print("\n".join(f"{entry.name}: {entry.family}" for entry in chosen))
        return
    known = records.load(options.json)
    _measure([entry for entry in chosen if entry.name not in known], options)
    done = records.load(options.json)
    print(table.summary([done[entry.name] for entry in chosen if entry.name in done]))


def _measure(chosen: list[Entry], options: argparse.Namespace) -> None:
    """Appends what is found to the file, and prints a line each."""
    commit = machine.commit()
    for number, (entry, found) in enumerate(_found(chosen, options), 1):
        record: records.Record = {"name": entry.name, "family": entry.family, "chip": options.chip}
        record |= {"batch": options.batch, "commit": commit}
        record |= {"outcome": "stopped", "message": found.reason} if isinstance(found, jobs.Lost) else found
        lines.append(options.json, record)
        print(f"{number}/{len(chosen)} {table.line(record)}", flush=True)


def _found(chosen: list[Entry], options: argparse.Namespace) -> Iterator[tuple[Entry, records.Record | jobs.Lost]]:
    """One after the other, or, where the extra `sweep` is installed, in its processes."""
    are_there = all(_models(entry, options) for entry in chosen)
    task = partial(_record, options, [*_IMPORTS, *(() if are_there else ("torch", "benchmarks.catalogue.preloaded"))])
    if jobs.is_there():
        return jobs.results(task, chosen, processes=options.processes, address=options.address)
    return ((entry, task(entry)) for entry in chosen)


def _record(options: argparse.Namespace, imports: list[str], entry: Entry) -> records.Record:
    """What is found of one network, in a process with limits."""
    folder = _folder(entry, options)
    limits = options.seconds, int(options.gigabytes * 1e9)
    preload(imports)
    if not _models(entry, options):
        stopped = run_apart(export, (entry, options.batch, folder, options.exporters), *limits)
        if stopped:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / FAILED).write_text(f"the export {stopped}")
    models = _models(entry, options)
    if not models:
        return {"outcome": "not exported", "message": "; ".join(_failures(folder))}
    return {"exporter": models[0].parent.name} | _measured(models[0].parent, options, limits)


def _measured(folder: Path, options: argparse.Namespace, limits: tuple[int, int]) -> records.Record:
    with tempfile.TemporaryDirectory() as place:
        file = Path(place, "found.json")
        stopped = run_apart(measure, (Job(folder, options.chip, options.only_time, file),), *limits)
        return records.read(file) | ({"outcome": "stopped", "message": stopped} if stopped else {})


def _folder(entry: Entry, options: argparse.Namespace) -> Path:
    return options.onnx / (entry.name if options.batch == 1 else f"{entry.name}@{options.batch}")


def _models(entry: Entry, options: argparse.Namespace) -> list[Path]:
    """The exported files there are, of the exporter to be preferred first."""
    files = (_folder(entry, options) / exporter / MODEL for exporter in options.exporters)
    return [file for file in files if file.exists()]


def _failures(folder: Path) -> list[str]:
    return [f"{file.parent.name}: {file.read_text()}" for file in sorted(folder.rglob(FAILED))]


def _choose(all_entries: list[Entry], options: argparse.Namespace) -> list[Entry]:
    """Those that are named, or a sample, or all in an order that mixes the packages."""
    unknown = set(options.names) - {entry.name for entry in all_entries}
    if unknown:
        raise SystemExit(f"no such networks: {', '.join(sorted(unknown))}; --list names them all")
    chosen = [entry for entry in all_entries if not options.names or entry.name in options.names]
    random.Random(options.seed).shuffle(chosen)
    return chosen[: options.sample]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.catalogue", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="networks; without any, all")
    parser.add_argument("--list", action="store_true", help="only print the names")
    parser.add_argument("--sample", type=int, metavar="N", help="only so many, chosen at random")
    parser.add_argument("--draw", type=int, metavar="N",
                        help="instead, so many of timm's networks with images of drawn sizes and numbers")  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, help="of the choice and of the order")
    parser.add_argument("--chip", choices=CHIPS, default="inf2")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--exporters", nargs="+", choices=EXPORTERS, default=list(EXPORTERS),
                        help="the first whose export works counts: %(default)s")  # fmt: skip
    parser.add_argument("--only-time", action="store_true", help="compile and ask the clock; run nothing")
    parser.add_argument("--json", type=Path, default=Path("build/catalogue.jsonl"), metavar="FILE", help="%(default)s")
    parser.add_argument("--onnx", type=Path, default=ONNX_FOLDER, metavar="FOLDER", help="models: %(default)s")
    parser.add_argument("--seconds", type=int, default=300, help="of processor time a network: %(default)s")
    parser.add_argument("--gigabytes", type=float, default=24, help="of memory that it may ask for: %(default)s")
    parser.add_argument("--processes", type=int, metavar="N", help="networks at once, with the extra `sweep` (cores)")
    parser.add_argument("--address", default="", help="a cluster of Ray to measure on, with the extra `sweep`")
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("OLD", "NEW"), help="print what changed")
    parser.add_argument("--publish", nargs="+", type=Path, metavar="FILE", help="write docs/catalogue.md")
    return parser


if __name__ == "__main__":
    main()
