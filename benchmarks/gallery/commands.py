"""Scripts whose code stands in comments: what a reader is to type, as a script."""

import re
from collections.abc import Callable, Iterator

_BLOCK = re.compile(r"^(#? *)\.\. code-block:: (\w+)")
_MODEL = "from benchmarks.gallery.downloads import resnet50_onnx\nimport onnx\nonnx.save(resnet50_onnx(), {name!r})\n"


def code_blocks(source: str, language: str) -> Iterator[str]:
    """The blocks of code of a language among a script's comments."""
    lines = iter(source.splitlines())
    for line in lines:
        found = _BLOCK.match(line)
        if not found or found[2] != language:
            continue
        block: list[str] = []
        for inside in lines:
            text = inside.removeprefix("#")
            if text.strip() and not text.startswith("  "):
                break
            if not text.strip().startswith(":"):
                block.append(text)
        margin = min((len(text) - len(text.lstrip()) for text in block if text.strip()), default=0)
        yield "\n".join(text[margin:] for text in block).strip("\n")


def _tvmc_python(source: str) -> str:
    """The steps in their order; what is only shown (shells, results, remote devices) is left out."""
    blocks = [block for block in code_blocks(source, "python") if "tvmc" in block and "wget" not in block]
    # shown with names that are to be filled in, or said to be an alternative to what was done before
    # (the one with `trials` has no target, which TVM refuses, too)
    blocks = [block for block in blocks if not re.search("hostname|^python |trials=10000", block)]
    filled = [block.replace("desired_model_path", "'desired.tar'").replace("...", "pass") for block in blocks]
    return _MODEL.format(name="my_model.onnx") + "\n".join([*filled, "print(result)"])


def _tvmc_commands(source: str) -> str:
    """Its commands, run by a shell in which `tvmc` is this project's, and its two scripts."""
    commands = [block for block in code_blocks(source, "bash") if re.match(r"(# .*\n)?tvmc (compile|run|tune)", block)]
    steps = "\n".join(
        line for block in commands for line in block.splitlines() if not re.match(r"\s*#|\s*python postprocess", line)
    )
    scripts = [block for block in code_blocks(source, "python") if block.startswith("#!python")]
    before, after = (block.replace("\t", "    ").replace("   \t  ", "    ") for block in scripts)
    return "\n".join(
        [
            _MODEL.format(name="resnet50-v2-7.onnx"),
            before,
            "import subprocess, sys",
            f"steps = {re.sub('--repeat 100', '--repeat 2', steps)!r}",  # the model's time is not the chip's
            "steps = steps.replace('llvm -mcpu=broadwell', 'neuron').replace('\"llvm\"', '\"neuron\"')",
            "steps = 'set -e\\ntvmc() { ' + sys.executable + ' -m tvm_neuron.tvmc \"$@\"; }\\n' + steps",
            "subprocess.run(['bash', '-c', steps], check=True)",
            after,
        ]
    )


COMMANDS: dict[str, Callable[[str], str]] = {"tvmc_python": _tvmc_python, "tvmc_command_line_driver": _tvmc_commands}
