"""A stand-in for code generator, NEFF and hardware model, so that the rooms around them are tested alone.

Its "NEFF" is a library that TVM compiles of the subgraph for the CPU; its "machine" loads and runs that.
"""

import base64
import json
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relax

import tvm_neuron.codegen
from tvm_neuron.frontend.origin import OUTPUTS_ATTR
from tvm_neuron.isa.dtypes import device_dtype
from tvm_neuron.partition import Match
from tvm_neuron.runtime import program


def compile_function(func: relax.Function, name: str, device: Any, options: Any) -> bytes:
    """The subgraph as bytes."""
    fields = func.ret_ty.fields if isinstance(func.ret_ty, relax.TupleType) else [func.ret_ty]
    names = [str(name) for name in func.attrs[OUTPUTS_ATTR]]
    infos = {
        "inputs": [_info(var.name, var.ty) for var in func.params],
        "outputs": [_info(name, ty) for name, ty in zip(names, fields, strict=True)],
    }
    mod = tvm.IRModule({"main": func.without_attr("Codegen").with_attr("global_symbol", "main")})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "subgraph.so")
        relax.build(mod, tvm.target.Target({"kind": "llvm"})).export_library(str(path))
        return json.dumps(infos | {"library": base64.b64encode(path.read_bytes()).decode()}).encode()


def read(data: bytes) -> SimpleNamespace:
    """The stand-in for `neff.read_pipeline`."""
    parsed = json.loads(data)
    infos = {k: tuple(SimpleNamespace(**row) for row in parsed[k]) for k in ("inputs", "outputs")}
    every = [*infos["inputs"], *infos["outputs"]]
    tensors = [SimpleNamespace(name=i.name, shape=i.shape, dtype=device_dtype(i.dtype)) for i in every]
    parts = SimpleNamespace(library=base64.b64decode(parsed["library"]), tensors=tensors, **infos)
    return SimpleNamespace(program=parts, **infos)


class Cores:
    """The stand-in for `sim.Cores`."""

    def __init__(self, compiled: SimpleNamespace) -> None:
        program_ = self._program = compiled.program
        self.inputs = {tensor.name: tensor for tensor in program_.tensors}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "subgraph.so")
            path.write_bytes(program_.library)
            self._machine = relax.VirtualMachine(tvm.runtime.load_module(str(path)), tvm.cpu())

    def run(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Run the subgraph on the CPU."""
        tensors = [tvm.runtime.tensor(inputs[info.name].astype(info.dtype)) for info in self._program.inputs]
        result = self._machine["main"](*tensors)
        results = [result] if isinstance(result, tvm.runtime.Tensor) else list(result)
        return {info.name: value.numpy() for info, value in zip(self._program.outputs, results, strict=True)}


def install(patch: pytest.MonkeyPatch) -> None:
    """Put the stand-ins where the runtime and the code generator look."""
    function = SimpleNamespace(compile_function=compile_function, can_schedule=lambda *_: Match())
    patch.setattr(tvm_neuron.codegen, "function", function, raising=False)
    patch.setattr(program, "shared", SimpleNamespace(read=read))
    patch.setattr(program, "sim", SimpleNamespace(Cores=Cores))


def _info(name: str, ty: relax.TensorType) -> dict[str, Any]:
    return {"name": name, "shape": [int(dim) for dim in ty.shape], "dtype": str(ty.dtype)}
