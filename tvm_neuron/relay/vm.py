"""`relay.vm` and `tvm.runtime.vm`: a library as the executable of Relay's virtual machine."""

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

import tvm
from tvm import relax
from tvm.runtime.module import BenchmarkResult

from tvm_neuron.errors import InputError
from tvm_neuron.profile.report import Report
from tvm_neuron.relay.build_module import TargetLike, build, optimize
from tvm_neuron.relay.compiled import Compiled, by_name, is_open
from tvm_neuron.relay.factory import ExecutorFactory
from tvm_neuron.relay.graph_executor import GraphModule
from tvm_neuron.relay.lower import to_relax
from tvm_neuron.relay.modules import is_relay
from tvm_neuron.runtime import report

_Theirs = tvm.runtime.vm.VirtualMachine


Library: TypeAlias = ExecutorFactory | tvm.runtime.Module


class Executable:
    """What `compile` makes. `lib` is the library; the bytecode of `save` only says whether the result is a tuple.

    Of an open model `lib` compiles for the shapes of each call, in this process.
    """

    def __init__(self, lib: Library | Compiled, gives_tuple: bool) -> None:
        self.lib = lib
        self.gives_tuple = gives_tuple

    def save(self) -> tuple[bytearray, Library]:
        """The bytecode and the library: write the one to a file, and export the other.

        Raises InputError: there is no library, since the model is open.
        """
        if isinstance(self.lib, Compiled):
            raise InputError("save: this model is compiled for the shapes of each call; give all shapes at its import")
        return bytearray(json.dumps({"gives_tuple": self.gives_tuple}).encode()), self.lib

    @staticmethod
    def load_exec(bytecode: bytes | bytearray, lib: tvm.runtime.Module) -> "Executable":
        """The executable from what `save` gave.

        Raises InputError: the bytecode is of something else.
        """
        try:
            return Executable(lib, bool(json.loads(bytes(bytecode))["gives_tuple"]))
        except (ValueError, KeyError, TypeError) as error:
            raise InputError("load_exec: this is no bytecode that Executable.save() gave") from error


class VirtualMachine(tvm.runtime.vm.VirtualMachine):  # which looks up its constants by this name
    """Runs an `Executable` with the methods of TVM 0.18; other executables get TVM's own virtual machine."""

    def __new__(cls, exe: Any, *args: Any, **kwargs: Any) -> Any:
        """An object of this class, or of TVM's."""
        return super().__new__(cls) if isinstance(exe, Executable) else _Theirs(exe, *args, **kwargs)

    def __init__(self, exe: Executable, device: Any, memory_cfg: Any = None) -> None:
        del memory_cfg  # memory is the NeuronCore's own
        self._gives_tuple = exe.gives_tuple
        self._lib = exe.lib
        self._open, self._values = exe.lib if isinstance(exe.lib, Compiled) else None, dict[str, Any]()
        if not isinstance(exe.lib, Compiled):
            self._module = GraphModule(exe.lib["default"](device[0] if isinstance(device, list) else device))

    def set_input(self, func_name: str, *args: Any, **kwargs: Any) -> None:
        """Sets the inputs of a function by position and keyword.

        Raises InputError: the function is not `main`, or there are more values than inputs.
        """
        _check_name(func_name)
        names = self._names()
        if len(args) > len(names):
            raise InputError(f"the function takes {', '.join(names) or 'no inputs'}; {len(args)} values were given")
        values = dict(zip(names, args, strict=False)) | kwargs
        if self._open:
            self._values |= values
        else:
            self._module.set_input(**values)

    def set_one_input(self, func_name: str, *args: Any, **kwargs: Any) -> None:
        """Sets one input of a function, by its name or position and its value, or by keyword.

        Raises InputError: it is more or less than one, or there is no such input.
        """
        if len(args) + 2 * len(kwargs) != 2:
            raise InputError("set_one_input takes the name or the position of one input, and its value")
        key, value = args or next(iter(kwargs.items()))
        names = self._names()
        if isinstance(key, int) and not 0 <= key < len(names):
            raise InputError(f"there is no input {key}; the function takes {', '.join(names) or 'no inputs'}")
        self.set_input(func_name, **{names[key] if isinstance(key, int) else key: value})

    def get_input_index(self, input_name: str, func_name: str = "main") -> int:
        """The position of an input, -1 if there is none of that name."""
        _check_name(func_name)
        return self._names().index(input_name) if input_name in self._names() else -1

    def _names(self) -> list[str]:
        return self._open.names if self._open else [spec.name for spec in self._module.module.inputs]

    def run(self, /, *args: Any, **kwargs: Any) -> Any:
        """Runs `main` on these inputs, or on those that are set: its result, a list if it is a tuple."""
        return self.invoke("main", *args, **kwargs)

    def invoke(self, func_name: str, *args: Any, **kwargs: Any) -> Any:
        """The same for a function by name."""
        self.set_input(func_name, *args, **kwargs)
        self._load()
        self._module.run()
        found = self.get_outputs()
        return found if self._gives_tuple else found[0]

    def invoke_stateful(self, func_name: str, *args: Any, **kwargs: Any) -> None:
        """The same; `get_outputs` has the results."""
        self.invoke(func_name, *args, **kwargs)

    def get_outputs(self) -> list[tvm.runtime.Tensor]:
        """All results of the last run."""
        return [self._module.get_output(index) for index in range(self._module.get_num_outputs())]

    @property
    def report(self) -> Report:
        """Where operators run and what it costs; of an open model what the last call took, all stages together.

        Raises InputError: a model is open, and nothing was called.
        """
        if self._open:
            return self._open.report
        return report(self._lib)

    def benchmark(self, device: Any, *args: Any, func_name: str = "main", **kwargs: Any) -> BenchmarkResult:
        """Wall time on the hardware model; see `GraphModule.benchmark`."""
        self.set_input(func_name, *args)
        self._load()
        return self._module.benchmark(device, **kwargs)

    def _load(self) -> None:
        """Of an open model what is compiled for the inputs that are set."""
        if self._open:
            executor, self._gives_tuple = self._open.loaded(by_name(self._open.names, (), self._values))
            self._module = GraphModule(executor)


def compile(  # noqa: A001 - Relay's name
    mod: tvm.IRModule, target: TargetLike | None = "neuron", target_host: Any = None,
    params: Mapping[str, Any] | None = None,
) -> Executable:  # fmt: skip
    """Compile a module for `VirtualMachine`; raises what `relay.build` raises.

    An open model (see `relay.frontend.from_onnx`), or one with `Any` or variables in the shapes of its inputs, is
    compiled by `VirtualMachine`, when calls tell its shapes.
    """
    del target_host  # the CPU parts are built for this machine
    if is_open(mod):
        return Executable(Compiled(mod, target, params), gives_tuple=False)  # what a run says
    lowered = to_relax(mod) if is_relay(mod) else mod
    gives_tuple = isinstance(lowered["main"].ret_ty, relax.TupleType)
    return Executable(build(lowered, target, params=params), gives_tuple)


class VMCompiler:
    """`compile` in steps, as TVM 0.18 had them; the errors are those of `compile`."""

    def __init__(self) -> None:
        self._params: dict[str, Any] = {}
        self._made: Executable | None = None

    def set_params(self, params: Mapping[str, Any]) -> None:
        """The weights, to be given before `lower`."""
        self._params |= params

    def lower(self, mod: tvm.IRModule, target: TargetLike | None = "neuron", target_host: Any = None) -> None:
        """Compiles the module."""
        self._made = compile(mod, target, target_host, self._params)

    def optimize(
        self, mod: tvm.IRModule, target: TargetLike | None = "neuron", target_host: Any = None,
        params: Mapping[str, Any] | None = None,
    ) -> tuple[tvm.IRModule, Mapping[str, Any]]:  # fmt: skip
        """`relay.optimize`."""
        del target_host
        return optimize(mod, target, params)

    def codegen(self) -> None:
        """Nothing: `lower` has done it."""

    def get_exec(self) -> Executable:
        """The executable.

        Raises InputError: there is none before `lower`.
        """
        if self._made is None:
            raise InputError("VMCompiler.get_exec: call lower(mod, target) first")
        return self._made


def _check_name(func_name: str) -> None:
    if func_name != "main":
        raise InputError(f"there is no function '{func_name}', only 'main'")
