"""`tvm_neuron.compile`: a model of any framework in, the library of `relay.build` out."""

import os
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
import tvm

from tvm_neuron import relay
from tvm_neuron.codegen.options import BuildOptions, current_options
from tvm_neuron.errors import ModelError
from tvm_neuron.frontend import Params, from_onnx, mxnet, xla
from tvm_neuron.frontend import jax as of_jax
from tvm_neuron.frontend import tensorflow as of_tensorflow
from tvm_neuron.frontend import torch as of_torch
from tvm_neuron.frontend.examples import shapes_by_name
from tvm_neuron.frontend.onnx import input_names
from tvm_neuron.frontend.tflite import from_tflite, read_bytes
from tvm_neuron.relay.build_module import TargetLike
from tvm_neuron.relay.factory import ExecutorFactory
from tvm_neuron.relay.spmd import build_spmd


def compile_model(
    model: Any, example_inputs: Any = None, target: TargetLike | None = "neuron", *, options: BuildOptions | None = None
) -> ExecutorFactory:
    """Compile a model of any framework that there is a door for.

    `model` is the path of a file (.onnx; of torch .pt2, or .pt with a script; .mlir with StableHLO, .hlo or .pb with an
    HLO proto; of MXNet -symbol.json or .params, the other beside it; .keras, .tflite, .pb with a frozen graph, a
    SavedModel's folder), an ONNX ModelProto, a module of Relax or Relay, of PyTorch an `nn.Module`, a function of
    tensors, a ScriptModule or an ExportedProgram, of TensorFlow a model of Keras, a function, concrete function, loaded
    SavedModel or GraphDef, or of JAX a function of `jax.jit`, what its `lower` gives, or a function with arrays of JAX
    as its example inputs.
    `example_inputs` are the arguments of one call of a model that has none of its own: a tensor, a tuple of arguments,
    or (not of JAX) a dictionary of named ones; shapes and dtypes are taken from them. With an ONNX model they give the
    sizes that it leaves open, or another batch. An ExportedProgram that leaves its batch open gives a library that
    takes any number of rows (`dynamic_batch`).

    Raises OptionError (a package that is needed is not installed), ModelError (the model can't be read or imported),
    and what `relay.build` raises.
    """
    if isinstance(model, tvm.IRModule | relay.Function):
        return relay.build(model, target, options=options)
    opened = _opened(model, example_inputs)
    if isinstance(opened, xla.Parts):
        return build_spmd([from_onnx(part) for part in opened.models], opened.plan, target, options=options)
    mod, params, options = _imported(model, opened, example_inputs, options)
    return relay.build(mod, target, params=params, options=options)


def import_model(
    model: Any, example_inputs: Any, options: BuildOptions | None
) -> tuple[tvm.IRModule, Params, BuildOptions | None]:
    """A model that is none of TVM as a Relax module, its weights, and the options, to which an open batch is added."""
    opened = _opened(model, example_inputs)
    if isinstance(opened, xla.Parts):
        raise ModelError(
            f"the program is for {opened.plan.cores} devices, of which each part between their exchanges is a model of "
            "its own: compile it (tvm_neuron.jax.compile, tvm_neuron.compile), and read the library's report"
        )
    return _imported(model, opened, example_inputs, options)


def _opened(model: Any, example_inputs: Any) -> Any:
    """What a file holds; of JAX and TensorFlow the ONNX model that it becomes, or the parts of one."""
    if isinstance(model, str | os.PathLike):
        model = _read(Path(model), example_inputs)
    if of_tensorflow.is_of_tensorflow(model):
        return of_tensorflow.model_as_onnx(model, example_inputs)
    if not of_torch.is_of_torch(model) and of_jax.is_of_jax(model, example_inputs):
        whole = model if hasattr(model, "compiler_ir") else of_jax.lowered(model, _arguments(example_inputs))
        return xla.to_onnx(whole.compiler_ir("stablehlo"))
    return model


def _imported(
    given: Any, model: Any, example_inputs: Any, options: BuildOptions | None
) -> tuple[tvm.IRModule, Params, BuildOptions | None]:
    """`import_model` of what was `given`, opened."""
    if isinstance(model, bytes):
        return *from_tflite(model), options
    if isinstance(model, Path | onnx.ModelProto):
        is_onnx = model is given or isinstance(model, Path)  # else it was made with the example's shapes
        has_shapes = is_onnx and example_inputs is not None
        shapes = shapes_by_name(example_inputs, input_names(model)) if has_shapes else None
        return *from_onnx(model, shapes), options  # which refuses files that are no ONNX
    if not of_torch.is_of_torch(model) and not callable(model):
        raise ModelError(
            "tvm_neuron.compile takes the path of a model, an ONNX, Relax or Relay model, or one of PyTorch, "
            f"TensorFlow or JAX, got {type(model).__name__}"
        )
    if not of_torch.is_of_torch(model) and not of_torch.has_tensors(example_inputs):
        raise ModelError(
            "a plain function is taken with tensors of PyTorch or arrays of JAX as its example_inputs; with others, of "
            "JAX give jax.jit(function), of TensorFlow tf.function(function)"
        )
    found = of_torch.exported(model, example_inputs)
    if found.has_open_batch:
        options = replace(options or current_options() or BuildOptions(), dynamic_batch=True)
    elif found.sizes:
        sizes = ", ".join(f"{name} {list(shape)}" for name, shape in found.sizes.items())
        warnings.warn(
            f"the exported program leaves more open than its batch: it is compiled for the example's sizes ({sizes}) "
            "alone; for several, give relay.build_buckets an import for each",
            stacklevel=3,
        )
    return *from_onnx(found.model), options


def _arguments(example_inputs: Any) -> tuple[Any, ...]:
    if example_inputs is None:
        raise ModelError("a function of JAX needs example_inputs: the arguments of one call, as an array or a tuple")
    return example_inputs if isinstance(example_inputs, tuple) else (example_inputs,)


def _read(path: Path, example_inputs: Any) -> Any:
    """What is in a file; the path itself of one that the importer of ONNX reads or refuses."""
    if path.suffix in of_torch.SUFFIXES:
        return of_torch.read(path)
    if mxnet.is_mxnet(path):
        symbol, weights = mxnet.read(path)
        return mxnet.to_onnx(symbol, weights, *mxnet.described(symbol, weights, example_inputs))
    if xla.is_xla(path):
        return xla.to_onnx(xla.read(path))
    if of_tensorflow.is_tensorflow(path):
        return of_tensorflow.read(path)
    return read_bytes(path) if path.suffix == ".tflite" else path
