"""`saved_model.compile`: a SavedModel in, one out whose signature runs on the hardware model."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from tvm_neuron.cli.choices import build_options
from tvm_neuron.codegen.options import BuildOptions
from tvm_neuron.errors import ModelError, OptionError
from tvm_neuron.frontend.tensorflow import captured, read
from tvm_neuron.profile.report import Report
from tvm_neuron.tensorflow.parts import compiled
from tvm_neuron.tensorflow.program import Program


def compile(  # noqa: A001 - what users of the original call
    model_dir: str | os.PathLike[str], compiled_dir: str | os.PathLike[str], batch_size: int | None = None,
    model_feed_dict: Mapping[str, Any] | None = None, dynamic_batch_size: bool = False,
    minimum_segment_size: int | None = None, no_fuse_ops: Sequence[str] = (), *, target: Any = "neuron",
    options: BuildOptions | None = None, compiler_args: Sequence[str] = (),
) -> Report:  # fmt: skip
    """Compile the signature of the SavedModel in `model_dir` and write `compiled_dir`, with the library inside.

    Sizes that the signature leaves open come from `model_feed_dict`, arrays for its inputs by name, or, of their first
    dimension alone, from `batch_size`. With `dynamic_batch_size` the result takes any number of rows. Operators of
    `no_fuse_ops` (names or patterns of them) stay on the CPU, and parts of the core have at least
    `minimum_segment_size` operators. `compiler_args` are words of `neuron-cc compile`, as `["--fp32-cast", "none"]`,
    instead of `options`. The result is loaded by `tf.saved_model.load` where `tvm_neuron.tensorflow` is imported.
    Operators that can't be imported, of strings for example, stay TensorFlow's, with libraries for what is between them
    (not with `dynamic_batch_size`). Returns the report: where operators run, what part of the multiplications moved to
    the core (`macs_moved`), and what it costs.

    Raises OptionError: `compiler_args` has unknown words, or is given beside `options`. Raises ModelError: there is no
    SavedModel, `compiled_dir` exists, or sizes are open. Raises what `tvm_neuron.compile` raises, too.
    """
    source, written = Path(model_dir), Path(compiled_dir)
    if not os.path.isfile(source / "saved_model.pb"):
        raise ModelError(f"'{source}' is no folder of a SavedModel")
    if written.exists():
        raise ModelError(f"'{written}' exists: give the compiled SavedModel a folder of its own")
    found = captured(read(source))
    shapes = {name: np.shape(value) for name, value in (model_feed_dict or {}).items()}
    for node in found.graph.node:
        if node.name in found.inputs and node.name not in shapes and batch_size is not None:
            _, *rest = [dim.size for dim in node.attr["shape"].shape.dim]
            shapes[node.name] = (batch_size, *rest)
    if compiler_args and options is not None:
        raise OptionError("saved_model.compile: options and compiler_args say the same; leave one of them out")
    chosen = build_options(compiler_args, "compiler_args") if compiler_args else options or BuildOptions()
    chosen = replace(
        chosen, dynamic_batch=dynamic_batch_size or chosen.dynamic_batch, on_cpu=(*chosen.on_cpu, *no_fuse_ops),
        minimum_segment_size=minimum_segment_size or chosen.minimum_segment_size,
    )  # fmt: skip
    program = Program(compiled(found, shapes, target, chosen), chosen.dynamic_batch, list(found.outputs))
    tf.saved_model.save(program, str(written), signatures=program.signature())
    return program.report
