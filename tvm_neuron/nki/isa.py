"""nki.isa: the instructions, in the two forms of the dialects, from one table.

Beta 1 returns a tile: `tile = nisa.exp(...)`; later versions write one: `nisa.exp(dst, ...)`.
"""

import functools
import inspect
from collections.abc import Callable, Sequence
from enum import IntEnum
from math import prod
from typing import Any

from tvm_neuron.nki import calls, later, rules
from tvm_neuron.nki.contents import is_added
from tvm_neuron.nki.emission import Result
from tvm_neuron.nki.operators import ALU, named
from tvm_neuron.nki.source import wrong
from tvm_neuron.nki.tile import tile_of
from tvm_neuron.nki.trace import current, target
from tvm_neuron.nki.view import View

ENGINES = {
    "tensor_engine": "tensor", "vector_engine": "vector", "scalar_engine": "scalar", "gpsimd_engine": "gpsimd",
    "unknown_engine": "unknown",
}  # fmt: skip

# Words that change nothing in the model: names, and advice to the vendor's compiler.
_ADVICE = ("asynchronous", "dge_mode", "oob_mode", "precise_schedule", "directives", "tile_position", "tile_size")
IGNORED = frozenset(("name", *_ADVICE))


class nc_version(IntEnum):  # noqa: N801 - the language's own name
    """Generations of the core."""

    gen2, gen3, gen4 = 2, 3, 4


def get_nc_version() -> nc_version:
    """The core that the kernel is traced for."""
    return nc_version(min(4, max(2, target().core_generation)))


def _same(*names: str) -> dict[str, Any]:
    return {name: name for name in names}


_MEMBERS: dict[str, dict[str, Any]] = {
    "engine": {name.removesuffix("_engine"): value for name, value in ENGINES.items()},
    "oob_mode": {"error": 0, "skip": 1},
    "reduce_cmd": _same("idle", "reset", "reduce", "reset_reduce"),
    "dge_mode": _same("none", "swdge", "hwdge", "unknown"),
    "dma_engine": _same("dma", "gpsimd_dma"),
    "matmul_perf_mode": _same("none", "double_row", "double_column", "double_pixel"),
}
CONSTANTS = {kind: type(kind, (), members) for kind, members in _MEMBERS.items()}
INSTRUCTIONS: dict[str, Callable[..., Result]] = {
    "activation": calls.activation,
    "activation_reduce": calls.activation_reduce,
    "bn_aggr": calls.bn_aggr,
    "bn_stats": calls.bn_stats,
    "dma_copy": calls.dma_copy,
    "dma_transpose": calls.load_transposed,
    "local_gather": calls.local_gather,
    "max8": calls.max8,
    "nc_find_index8": calls.find_index8,
    "nc_match_replace8": calls.match_replace8,
    "nc_matmul": calls.nc_matmul,
    "nc_transpose": calls.nc_transpose,
    "range_select": calls.range_select,
    "reciprocal": calls.reciprocal,
    "scalar_tensor_tensor": calls.scalar_tensor_tensor,
    "tensor_copy": calls.tensor_copy,
    "tensor_reduce": calls.tensor_reduce,
    "tensor_scalar": calls.tensor_scalar,
    "tensor_scalar_reduce": calls.tensor_scalar_reduce,
    "tensor_tensor": calls.tensor_tensor,
    "tensor_tensor_scan": calls.tensor_tensor_scan,
}


@functools.cache
def _operands(make: Callable[..., Result]) -> tuple[str, ...]:
    return tuple(inspect.signature(make).parameters)


def _words(name: str, make: Callable[..., Result], words: dict[str, Any]) -> dict[str, Any]:
    taken = _operands(make)
    unknown = sorted(word for word in words if word not in taken and word not in IGNORED)
    if unknown:
        raise wrong(f"{name} has no operand {', '.join(unknown)} in this model; it has {', '.join(taken)}")
    return {word: value for word, value in words.items() if word in taken}


def _result(
    name: str, make: Callable[..., Result], operands: Sequence[Any], words: dict[str, Any], dst: View | None = None
) -> Result:
    """What the call gives, which is to be written to `dst` if that is known.

    Raises:
        KernelError: an operand is missing, superfluous, unknown, or not what the call takes.
    """
    known = _words(name, make, words)
    try:
        bound = inspect.signature(make).bind(*operands, **known)
    except TypeError as error:
        before = "" if dst is None else "dst, "
        raise wrong(f"{name}: {error}; it takes {before}{', '.join(_operands(make))}") from error
    rules.check(name, {"dst": dst, **bound.arguments})
    return make(*operands, **known)


def returning(name: str, make: Callable[..., Result]) -> Callable[..., View]:
    """The form of Beta 1."""

    def call(*operands: Any, dtype: Any = None, mask: Any = None, **words: Any) -> View:
        return tile_of(_result(name, make, operands, words), mask, dtype)

    call.__name__, call.__doc__ = name, make.__doc__
    return call


def _destination(
    name: str, make: Callable[..., Result], given: tuple[Any, ...], words: dict[str, Any]
) -> tuple[Any, tuple[Any, ...]]:
    """What is written, the first operand, and the others."""
    if "dst" in words:
        return words.pop("dst"), given
    if not given:
        others = (operand for operand in _operands(make) if operand != "dst")
        raise wrong(f"{name} without dst; it takes dst, {', '.join(others)}")
    return given[0], given[1:]


def writing(name: str, make: Callable[..., Result]) -> Callable[..., None]:
    """The form of Beta 2 and later."""

    def call(*given: Any, **words: Any) -> None:
        dst, operands = _destination(name, make, given, words)
        words.pop("dtype", None)  # samples give the one that `dst` has
        accumulate = words.pop("accumulate", None)
        result = _result(name, make, operands, words, dst)
        if result.add is not None and accumulate is not False:
            if accumulate and isinstance(dst, View) and dst.tensor.memory == "psum":
                current().settle()
                is_added(dst, must=True)
            result = Result(result.shape, result.dtype, result.memory, result.add)
        current().do(result, dst)

    call.__name__, call.__doc__ = name, make.__doc__
    return call


def _memset_into(dst: View, value: Any, engine: Any = None, **_: Any) -> None:
    """One number everywhere."""
    rules.check("memset", {"dst": dst, "engine": engine})
    current().do(calls.memset(dst.shape, value, dst.tensor.dtype, engine), dst)


def _dma_copy(*, dst: View, src: View, mask: Any = None, **_: Any) -> None:
    """The same values between device memory and SBUF."""
    current().do(calls.dma_copy(src), dst, mask)


def _shuffle(src: View, dst: View, shuffle_mask: Any, mask: Any = None, **_: Any) -> None:
    """Partitions of each 32 in another order."""
    current().do(calls.stream_shuffle(src, shuffle_mask), dst, mask)


def _copy_predicated(
    src: Any, dst: View, predicate: Any, mask: Any = None, reverse_pred: bool = False, **_: Any
) -> None:
    """Writes src where the predicate says so, and leaves the others."""
    rules.check("tensor_copy_predicated", {"src": src, "dst": dst, "predicate": predicate})
    current().do(calls.copy_predicated(src, dst, predicate, reverse_pred), dst, mask)


def _select_reduce(dst: View, predicate: Any, on_true: Any, on_false: Any, **words: Any) -> None:
    """A choice of each element, and the largest of what is chosen."""
    mask, words = words.pop("mask", None), _words("select_reduce", calls.select_reduce, words)
    given = {"dst": dst, "predicate": predicate, "on_true": on_true, "on_false": on_false}
    rules.check("select_reduce", given | words)
    current().do(calls.select_reduce(dst, predicate, on_true, on_false, **words), dst, mask)


def _core_barrier(data: Any, cores: Any, **_: Any) -> None:
    """Nothing: there is no other core to wait for."""
    if prod(current().grid) > 1:
        raise wrong("core_barrier among several instances: the model runs them one after another; launch one")


def _into(make: Callable[..., Result]) -> Callable[..., None]:
    """The form of calls whose result depends on where it is written."""

    def call(*given: Any, **words: Any) -> None:
        name = make.__name__.removesuffix("_into")
        dst, operands = _destination(name, make, given, words)
        current().do(_result(name, make, (dst, *operands), words), dst)

    return call


def _iota(expr: Any, dtype: Any = "int32", mask: Any = None, **_: Any) -> View:
    """An index at every place of its lattice."""
    return tile_of(calls.iota(expr), mask, dtype)


def _partition_reduce(op: Any, data: View, dtype: Any = None, mask: Any = None, **_: Any) -> View:
    """[1, *N]: the sum over the partitions."""
    if named(op, ALU, "tensor_partition_reduce") != "add":
        raise wrong("tensor_partition_reduce of something other than add; the model sums by the Tensor engine")
    return tile_of(calls.tensor_copy(tile_of(calls.partition_sum(data))), mask, dtype or data.dtype)


def namespace(returns: bool) -> dict[str, Any]:
    """All names of `nki.isa`, in the form of a dialect."""
    form = returning if returns else writing
    names: dict[str, Any] = {name: form(name, make) for name, make in INSTRUCTIONS.items()}
    names["memset"] = returning("memset", calls.memset) if returns else _memset_into
    if returns:
        names["dma_copy"] = _dma_copy
    if returns:
        names["affine_select"] = returning("affine_select", calls.affine_select)
        names["iota"] = _iota
        names["tensor_partition_reduce"] = _partition_reduce
        names["nc_stream_shuffle"] = _shuffle
        names["tensor_copy_predicated"] = _copy_predicated
    else:
        names["affine_select"] = _into(calls.affine_select_into)
        names["iota"] = _into(calls.iota_into)
        names["nc_stream_shuffle"] = lambda dst, src, *rest, **words: _shuffle(src, dst, *rest, **words)
        names["tensor_copy_predicated"] = lambda dst, src, *rest, **words: _copy_predicated(src, dst, *rest, **words)
    names["select_reduce"] = _select_reduce
    names |= CONSTANTS
    names["core_barrier"] = _core_barrier
    names |= {name: later.refusing(name, why) for name, why in later.CALLS.items()}
    return names | ENGINES | {"get_nc_version": get_nc_version, "nc_version": nc_version}


globals().update(namespace(returns=False))
