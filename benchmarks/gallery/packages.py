"""Packages that scripts import and that are not here: what stands in for some, and which are missing."""

import sys
from collections.abc import Callable
from importlib.util import find_spec
from types import ModuleType

_LARGE = ("tensorflow", "keras", "paddle", "dgl", "cv2", "coremltools")


def install(name: str) -> str:
    """Installs stand-ins for packages of the script `name` that are not here; says which."""
    package, maker = _STAND_INS.get(name, ("", str))
    return "" if package and find_spec(package) else maker()


def missing(error: BaseException) -> str:
    """The package for want of which a script ended, if it did."""
    name = getattr(error, "name", None) or ""
    is_large = isinstance(error, ModuleNotFoundError) and name.split(".")[0] in _LARGE
    return f"the package {name.split('.')[0]} is not installed" if is_large else ""


def _graphs() -> str:
    from benchmarks.gallery.graphs import install as install_graphs

    install_graphs()
    return "dgl and Cora stood in for"


def _interpreter() -> str:
    import ai_edge_litert.interpreter

    tensorflow = ModuleType("tensorflow")
    tensorflow.lite = ai_edge_litert.interpreter  # which is what tensorflow.lite became
    sys.modules["tensorflow"] = tensorflow
    return "tensorflow.lite is LiteRT's"


def _tune_config() -> str:
    import tvm_neuron.relay  # noqa: F401 - brings tvm.meta_schedule
    import tvm.meta_schedule  # isort: skip

    tvm.meta_schedule.TuneConfig = None  # imported, not used, and gone from TVM before 0.18
    return ""


_STAND_INS: dict[str, tuple[str, Callable[[], str]]] = {
    "build_gcn": ("dgl", _graphs),
    "deploy_prequantized_tflite": ("tensorflow", _interpreter),
    "using_optimized_torch": ("", _tune_config),
}
