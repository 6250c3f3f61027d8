"""Names of TVM 0.18 for modules of this package: `tvm.relay.vm` is `tvm_neuron.relay.vm`, imported when used."""

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType


class Aliases(MetaPathFinder, Loader):
    """Finds modules by names that begin with a key of `prefixes`, under the name that it stands for."""

    def __init__(self, prefixes: Mapping[str, str]) -> None:
        self._prefixes = prefixes

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The specification of the module, or None if there is none of this name."""
        real = self._real(fullname)
        try:
            return None if real is None or find_spec(real) is None else ModuleSpec(fullname, self)
        except ModuleNotFoundError:  # nor is its package here
            return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The one module of both names."""
        module = import_module(str(self._real(spec.name)))
        self._spec = module.__spec__  # the import system is about to write over it
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing: it has run already."""
        module.__spec__ = self._spec

    def _real(self, name: str) -> str | None:
        for old, new in self._prefixes.items():
            if name == old or name.startswith(f"{old}."):
                return new + name.removeprefix(old)
        return None


def install(prefixes: Mapping[str, str]) -> None:
    """From now on `import` finds them, before it looks for files: it would read those a second time."""
    sys.meta_path.insert(0, Aliases(prefixes))
