"""What is changed in a script: the added line and the target. Downloads are replaced outside of it."""

import re

_TARGETS = (
    (r"tvm\.target\.cuda\(\)", 'tvm.target.Target("neuron")'),
    (r"tvm\.cuda\(\)", "tvm.cpu(0)"),
    (r"tvm\.cuda\(0\)", "tvm.cpu(0)"),
    (r"\.cuda\(\)", ""),  # of torch
    (r'"cuda -libs=cudnn"', '"neuron"'),
    (r'"nvidia/geforce-rtx-3070"', '"neuron"'),
    (r'"llvm"', '"neuron"'),
    (r'"cuda"', '"neuron"'),
)


def changed(source: str) -> str:
    """The script with the line `import tvm_neuron.relay` and target neuron, in as many lines as it had."""
    for pattern, replacement in _TARGETS:
        source = re.sub(pattern, replacement, source)
    return f"import tvm_neuron.relay; {source}" if not source.startswith(("#", '"')) else _after_first_line(source)


def _after_first_line(source: str) -> str:
    lines = source.split("\n")
    first = next(n for n, line in enumerate(lines) if re.match(r"(import|from) \w", line) and not _is_in_text(lines, n))
    lines[first] = f"import tvm_neuron.relay; {lines[first]}"
    return "\n".join(lines)


def _is_in_text(lines: list[str], number: int) -> bool:
    return sum(line.count('"""') for line in lines[:number]) % 2 == 1
