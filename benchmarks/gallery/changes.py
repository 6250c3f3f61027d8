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

_PARTITION = "partition_for_neuron as partition_for_cutlass"
_OF_SCRIPT = {
    # the accelerator whose regions it cuts out is the one of the target
    "using_pipeline_executor": (
        (r"contrib\.cutlass import partition_for_cutlass", f"contrib.neuron import {_PARTITION}"),
        (r"from tvm\.contrib\.cutlass import finalize_modules", ""),
        (r"(?s)cutlass = tvm\.target\.Target\(\n    \{.*?\n\)", 'cutlass = tvm.target.Target("neuron")'),
        (r"lib1 = finalize_modules\(.*\)", ""),
    ),
    # of what a GPU needs, its library, its schedules and their search are left out
    "customize_opt": (
        (r"\nmod = CublasDispatch\(\)\(mod\)", ""),
        (r'os\.getenv\("CI", ""\) != "true"', "False"),
        (r"(?s)dl\.ApplyDefaultSchedule\(.*?\n        \),", ""),
        (r"tvm\.target\.Target\.from_device\(device\)", 'tvm.target.Target("neuron")'),
    ),
    "e2e_opt_model": (
        (r'(?s)relax\.get_pipeline\(\n +"static_shape_tuning",.*?\n    \)', 'relax.get_pipeline("zero")'),
        (r"mod = tvm\.s_tir\.transform\.DefaultGPUSchedule\(\)\(mod\)", "pass"),
        (r'"nvidia/geforce-rtx-3090-ti"', '"neuron"'),
    ),
    # NumPy 2.4 takes no type of TVM's for a dtype
    "cross_compilation_and_rpc": ((r"A\.dtype", "str(A.dtype)"),),
    # what they import from `tvm` was on a hidden line of the rendered page
    "using_as_torch": ((r"import tvm\n", "import tvm; from tvm import testing\n"),),
    "using_optimized_torch": ((r"import torch\n", "import torch; from tvm import testing\n"),),
}


def changed(name: str, source: str) -> str:
    """The script with the line `import tvm_neuron.relay` and target neuron."""
    for pattern, replacement in (*_OF_SCRIPT.get(name, ()), *_TARGETS):
        source = re.sub(pattern, replacement, source)
    return f"import tvm_neuron.relay; {source}" if not source.startswith(("#", '"')) else _after_first_line(source)


def _after_first_line(source: str) -> str:
    lines = source.split("\n")
    first = next(n for n, line in enumerate(lines) if re.match(r"(import|from) \w", line) and not _is_in_text(lines, n))
    lines[first] = f"import tvm_neuron.relay; {lines[first]}"
    return "\n".join(lines)


def _is_in_text(lines: list[str], number: int) -> bool:
    return sum(line.count('"""') for line in lines[:number]) % 2 == 1
