"""neuron-cc info: versions, options, device, inputs, outputs and memory of a compiled file."""

import argparse
import json
from typing import Any

from tvm_neuron import neff
from tvm_neuron.cli.compiled import add_core, read_core
from tvm_neuron.errors import NeffError

NAME = "info"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("file", metavar="FILE.neff")
    add_core(parser)
    parser.add_argument("--json", action="store_true", help="print everything as JSON")


def run(options: argparse.Namespace) -> None:
    """Prints what the file says about itself.

    Raises:
        NeffError: it can't be read.
    """
    if facts := _foreign(neff.read_file(options.file)):
        titles = ("NEFF version", "compiler version", "not read")
        lines = [f"{title + ':':18}{text}" for title, text in zip(titles, facts.values(), strict=True)]
    else:
        data = read_core(options)
        facts = neff.describe(neff.read(data), neff.read_header(data))
        lines = _lines(facts)
    print(json.dumps(facts, indent=2) if options.json else "\n".join(lines))


def _foreign(file: bytes) -> dict[str, str] | None:
    """What a NEFF that another version would read says about itself, and why there isn't more; None of other files."""
    if not file.startswith(neff.MAGIC):
        return None
    version, compiler = neff.read_banner(file)
    problem = neff.version_problem(version, compiler)
    if not problem and version > (neff.MAJOR, neff.MINOR):
        try:
            neff.read_pipeline(file)
        except NeffError as error:
            problem = str(error)
    told = {"neff_version": "{}.{}".format(*version), "compiler_version": compiler, "problem": problem}
    return told if problem else None


def _lines(facts: dict[str, Any]) -> list[str]:
    rows = [
        ("model", facts["name"]),
        ("NEFF version", facts["neff_version"]),
        ("compiler version", facts["compiler_version"]),
        ("device", facts["device"]["name"]),
        *(("option", f"{name} = {json.dumps(value)}") for name, value in sorted(facts["options"].items())),
        *(("input", _tensor(row)) for row in facts["inputs"]),
        *(("output", _tensor(row)) for row in facts["outputs"]),
        *(("memory", f"{name} {size:,} bytes") for name, size in facts["memory_bytes"].items()),
        *(("operators", f"{count} {where}") for where, count in facts["placement"].items()),
        *(
            ("instructions", f"{queue} {count['written']:,} written, {count['run']:,} run")
            for queue, count in facts["instructions"].items()
        ),
    ]
    return [f"{title + ':':18}{text}" for title, text in rows]


def _tensor(row: dict[str, Any]) -> str:
    return f"{row['name']} {'x'.join(map(str, row['shape'])) or 'scalar'} {row['dtype']}"
