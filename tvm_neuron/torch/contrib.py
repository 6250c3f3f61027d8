"""`tvm.contrib.torch`: models of PyTorch, and functions in TVMScript, as modules of PyTorch that run on the core."""

from collections.abc import Callable
from typing import Any

import torch
import tvm
import tvm_ffi
from tvm import relax

from tvm_neuron import relay
from tvm_neuron.build import BuildOptions
from tvm_neuron.errors import ModelError
from tvm_neuron.torch.operator import as_tensor


class GraphExecutorFactoryWrapper(torch.nn.Module):
    """A compiled model: called with its tensors it gives one tensor, or a list; `torch.save` and `load` keep it.

    What is loaded holds a library, code as a program is: call only what comes from where you trust it.
    """

    def __init__(self, library: torch.Tensor, digest: str) -> None:
        super().__init__()
        self.register_buffer("library", library)
        self.digest = digest

    def forward(self, *torch_inputs: torch.Tensor) -> Any:
        """The model's results."""
        found = torch.ops.tvm_neuron.run(list(torch_inputs), self.library, self.digest)
        return found[0] if len(found) == 1 else found


class OperatorModuleWrapper(torch.nn.Module):
    """A function in TVMScript: called with a tensor for each of its buffers it fills in those that it writes."""

    def __init__(self, module: Any) -> None:
        super().__init__()
        self.ir_module = _function_of(module)
        self._compiled: GraphExecutorFactoryWrapper | None = None

    def tune(self, target: Any = "neuron", max_trials_global: int = 32, **others: Any) -> None:
        """Compiles the function; the search is that of the compiler, and the arguments about TVM's change nothing."""
        del max_trials_global, others
        self.build(target)

    def script(self) -> str:
        """The function as TVMScript."""
        return str(self.ir_module.script())

    def build(self, target: Any = "neuron", options: BuildOptions | None = None) -> None:
        """Compiles the function, in the precision of `options`."""
        wanted = "neuron" if target in (None, "cpu") else target
        self._compiled = GraphExecutorFactoryWrapper(
            *as_tensor(relay.build(_as_module(self.ir_module), wanted, options=options))
        )

    def forward(self, *torch_inputs: torch.Tensor) -> list[torch.Tensor]:
        """The tensors given, those of the written buffers with their new values.

        Raises ModelError: there are more or fewer than buffers.
        """
        params = list(self.ir_module.params)
        if len(torch_inputs) != len(params):
            raise ModelError(f"the function takes {len(params)} tensors, {len(torch_inputs)} were given")
        if self._compiled is None:
            self.build()
        assert self._compiled is not None
        written = _written(self.ir_module)
        read = [tensor for tensor, is_written in zip(torch_inputs, written, strict=True) if not is_written]
        results = self._compiled(*read)
        filled = [tensor for tensor, is_written in zip(torch_inputs, written, strict=True) if is_written]
        for tensor, result in zip(filled, results if isinstance(results, list) else [results], strict=True):
            tensor.copy_(result)
        return list(torch_inputs)


def as_torch(func: Any) -> Any:
    """A function in TVMScript, or a module of one, as a module of PyTorch; of a Python function, a function of such."""
    if isinstance(func, tvm.IRModule | tvm.tirx.PrimFunc):
        return OperatorModuleWrapper(func)
    return lambda *args, **kwargs: OperatorModuleWrapper(func(*args, **kwargs))


def optimize_torch(
    func: Callable[..., Any], example_inputs: Any, *, max_trials_global: int = 0, work_dir: str | None = None,
    target: Any = "neuron", options: BuildOptions | None = None, **others: Any,
) -> GraphExecutorFactoryWrapper:  # fmt: skip
    """A model, traced as it is with `example_inputs`, a tensor or a list of them, and compiled for their shapes.

    The arguments about TVM's search change nothing; `options` are the compiler's, of which `optlevel=3` searches.
    Raises what `from_pytorch` and `relay.build` raise.
    """
    del max_trials_global, work_dir, others
    given = (example_inputs,) if isinstance(example_inputs, torch.Tensor) else tuple(example_inputs)
    wanted = "neuron" if target == "cpu" else target
    script = torch.jit.trace(func, given)
    infos = [(f"inp_{n}", (tuple(x.shape), str(x.dtype).removeprefix("torch."))) for n, x in enumerate(given)]
    mod, params = relay.frontend.from_pytorch(script, infos)
    return GraphExecutorFactoryWrapper(*as_tensor(relay.build(mod, wanted, params=params, options=options)))


def _function_of(module: Any) -> Any:
    """The one function of a module.

    Raises ModelError: it has more or fewer.
    """
    if not isinstance(module, tvm.IRModule):
        return module
    functions = [func for _, func in module.functions_items() if isinstance(func, tvm.tirx.PrimFunc)]
    if len(functions) != 1:
        raise ModelError(f"as_torch takes one function in TVMScript, the module has {len(functions)}")
    return functions[0]


def _written(func: Any) -> list[bool]:
    """Of each parameter, whether the function writes it.

    Raises ModelError: it writes one that stands before one that it only reads, or none.
    """
    stores: list[Any] = []
    tvm_ffi.structural_walk(func.body, (tvm.tirx.BufferStore, stores.append))
    written = [any(store.buffer.same_as(param) for store in stores) for param in func.params]
    if written != sorted(written) or not any(written):
        names = ", ".join(str(param.name) for param in func.params)
        raise ModelError(f"as_torch: of the buffers {names}, those that the function writes have to be the last")
    return written


def _as_module(func: Any) -> tvm.IRModule:
    """A module of Relax whose `main` calls the function."""
    types = [relax.TensorType([int(dim) for dim in param.ty.shape], str(param.ty.dtype)) for param in func.params]
    written = _written(func)
    inputs = [relax.Var(p.name, ty) for p, ty, w in zip(func.params, types, written, strict=True) if not w]
    results = [ty for ty, w in zip(types, written, strict=True) if w]
    bb = relax.BlockBuilder()
    name = str(func.attrs["global_symbol"]) if "global_symbol" in func.attrs else "function"
    callee = bb.add_func(func.with_attr("global_symbol", name), name)
    with bb.function("main", inputs):
        with bb.dataflow():
            result = bb.emit_output(relax.call_tir(callee, inputs, results if len(results) > 1 else results[0]))
        bb.emit_func_output(result)
    return bb.get()


torch.serialization.add_safe_globals([GraphExecutorFactoryWrapper])
