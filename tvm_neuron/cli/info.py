"""neuron-cc info: versions, options, device, inputs, outputs and memory of a compiled file.

Example:
  neuron-cc info model.so --program neuron_0
"""

import argparse
import json
from collections import Counter
from typing import Any

from tvm_neuron import neff
from tvm_neuron.cli.compiled import add_core, add_program, is_library, open_compiled, read_core
from tvm_neuron.errors import NeffError

NAME = "info"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("file", metavar="FILE", help="a .neff, or a library (.so)")
    add_program(parser)
    add_core(parser)
    parser.add_argument("--json", action="store_true", help="print everything as JSON")


def run(options: argparse.Namespace) -> None:
    """Prints what the file says about itself.

    Raises:
        NeuronError: it can't be read, or has no such program.
    """
    facts: dict[str, Any] | None
    if is_library(options.file) and not options.program:
        facts = _of_library(open_compiled(options.file), options.bucket)
        lines = _library_lines(facts)
    elif facts := _foreign(neff.read_file(options.file)):
        titles = ("NEFF version", "compiler version", "not read")
        lines = _titled(list(zip(titles, facts.values(), strict=True)))
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


def _of_library(library: Any, bucket: int) -> dict[str, Any]:
    """What a library says about itself, and which programs it has."""
    from tvm_neuron.runtime import manifest, neffs

    described = manifest(library, bucket)
    programs = {
        name: {"cores": len(neff.core_files(data)), "bytes": len(data)} for name, data in neffs(library, bucket).items()
    }
    return {
        "compiler_version": described["compiler"].removeprefix("tvm_neuron "),
        "options": described["options"],
        "device": described["device"],
        "inputs": described["inputs"],
        "outputs": described["outputs"],
        "placement": dict(Counter(row["where"] for row in described["placement"])),
        "order": described["order"],
        "programs": programs,
    }


def _library_lines(facts: dict[str, Any]) -> list[str]:
    rows = [
        ("compiler version", facts["compiler_version"]),
        ("device", facts["device"]),
        *_option_rows(facts),
        *_tensor_rows(facts),
        *(("operators", f"{count} {where}") for where, count in facts["placement"].items()),
        *(
            ("program", f"{name}, {row['cores']} {'core' if row['cores'] == 1 else 'cores'}, {row['bytes']:,} bytes")
            for name, row in facts["programs"].items()
        ),
    ]
    return _titled(rows)


def _titled(rows: list[tuple[str, str]]) -> list[str]:
    return [f"{title + ':':18}{text}" for title, text in rows]


def _option_rows(facts: dict[str, Any]) -> list[tuple[str, str]]:
    return [("option", f"{name} = {json.dumps(value)}") for name, value in sorted(facts["options"].items())]


def _tensor_rows(facts: dict[str, Any]) -> list[tuple[str, str]]:
    return [(kind, _tensor(row)) for kind in ("input", "output") for row in facts[f"{kind}s"]]


def _lines(facts: dict[str, Any]) -> list[str]:
    rows = [
        ("model", facts["name"]),
        ("NEFF version", facts["neff_version"]),
        ("compiler version", facts["compiler_version"]),
        ("device", facts["device"]["name"]),
        *_option_rows(facts),
        *_tensor_rows(facts),
        *(("memory", f"{name} {size:,} bytes") for name, size in facts["memory_bytes"].items()),
        *(("operators", f"{count} {where}") for where, count in facts["placement"].items()),
        *(
            ("instructions", f"{queue} {count['written']:,} written, {count['run']:,} run")
            for queue, count in facts["instructions"].items()
        ),
    ]
    return _titled(rows)


def _tensor(row: dict[str, Any]) -> str:
    return f"{row['name']} {'x'.join(map(str, row['shape'])) or 'scalar'} {row['dtype']}"
