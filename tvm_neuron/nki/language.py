"""nki.language: tensors, loops, indices and arithmetic on tiles; every function that computes gives a tile."""

import math
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np

from tvm_neuron.nki import calls, later
from tvm_neuron.nki.dtypes import as_held, dtype_name
from tvm_neuron.nki.index import Mgrid, arange
from tvm_neuron.nki.loops import affine_range, sequential_range, static_range
from tvm_neuron.nki.operators import ACTIVATION, BITS
from tvm_neuron.nki.placing import Placed, placed_at
from tvm_neuron.nki.source import wrong
from tvm_neuron.nki.tile import tile_of
from tvm_neuron.nki.trace import current, target
from tvm_neuron.nki.view import View, ds

float32, float16, bfloat16 = (np.dtype(name) for name in (np.float32, np.float16, ml_dtypes.bfloat16))
int8, int16, int32 = (np.dtype(name) for name in (np.int8, np.int16, np.int32))
uint8, uint16, uint32, bool_ = (np.dtype(name) for name in (np.uint8, np.uint16, np.uint32, np.bool_))
float8_e4m3, float8_e5m2 = np.dtype(ml_dtypes.float8_e4m3), np.dtype(ml_dtypes.float8_e5m2)
float8_e4m3fn = np.dtype(ml_dtypes.float8_e4m3fn)
fp32 = SimpleNamespace(min=float(np.finfo(np.float32).min), max=float(np.finfo(np.float32).max))
sbuf, psum, hbm, private_hbm, shared_hbm = "sbuf", "psum", "hbm", "private_hbm", "shared_hbm"
mgrid, finfo = Mgrid(), np.finfo


class NKIObject:
    """What classes that kernels use are derived from; one without its own `__init__` takes its fields by name.

    A field that is not given is None, also of a dataclass.
    """

    def __init_subclass__(cls) -> None:
        own = vars(cls).get("__annotations__", {})
        plain = [name for name, value in vars(cls).items() if not name.startswith("_") and not callable(value)]
        cls.__annotations__ = own | {name: Any for name in plain if name not in own}
        for name in own:
            if name not in vars(cls):
                setattr(cls, name, None)

    def __init__(self, **fields: Any) -> None:
        for name, value in fields.items():
            if name not in type(self).__annotations__:
                raise wrong(f"{type(self).__name__} has no field {name}")
            setattr(self, name, value)


class par_dim(int):  # noqa: N801 - the language's own name
    """The size of the axis that lies on the partitions."""


class _TileSize:
    """Sizes of the chip that the kernel is traced for."""

    @property
    def pmax(self) -> int:
        """Partitions."""
        return target().partitions

    @property
    def psum_fmax(self) -> int:
        """float32 numbers in a bank of PSUM."""
        return target().psum_bank_bytes // 4

    @property
    def gemm_stationary_fmax(self) -> int:
        """Columns of a stationary tile."""
        return target().pe_columns

    @property
    def gemm_moving_fmax(self) -> int:
        """Columns of a moving tile."""
        return target().moving_max_elems

    @property
    def psum_num_banks(self) -> int:
        """Banks of PSUM."""
        return target().psum_banks

    @property
    def total_available_sbuf_size(self) -> int:
        """Bytes of a partition of SBUF."""
        return target().sbuf_bytes_per_partition

    psum_bank_fmax = psum_fmax
    bn_stats_fmax = gemm_moving_fmax
    psum_min_align, sbuf_min_align = 4, 1


tile_size = _TileSize()


def ndarray(shape: Any, dtype: Any, *, buffer: Any = None, name: str = "", address: Any = None, **_: Any) -> View:
    """A tensor that holds nothing yet, in SBUF by default; at an address if one is given."""
    trace, memory = current(), buffer or "sbuf"
    if address is not None:
        memory = placed_at(memory, address)
    given = (shape,) if isinstance(shape, int) else tuple(shape)
    if any(int(count) != count for count in given):
        raise wrong(f"a tensor of shape {list(given)}; its axes are whole numbers: divide by //")
    sizes = tuple(int(count) for count in given)
    axis = next((at for at, count in enumerate(given) if isinstance(count, par_dim)), 0)
    if isinstance(memory, Placed):
        made = trace.tensor(sizes, dtype_name(dtype), memory.memory, name, axis)
        size = made.tensor.elems * made.dtype.itemsize
        made.tensor.addresses = trace.placed(
            lambda: [memory.addressed(at, sizes[axis], size) for at in np.ndindex(*sizes[:axis])]
        )
        return made
    if memory not in (sbuf, psum, hbm, private_hbm, shared_hbm):
        raise wrong(f"buffer={buffer!r}; it is one of nl.sbuf, nl.psum, nl.hbm, nl.private_hbm and nl.shared_hbm")
    if memory == shared_hbm:
        return trace.share(sizes, dtype_name(dtype), name)
    if memory in (hbm, private_hbm):
        return trace.tensor(sizes, dtype_name(dtype), "hbm", name)
    return trace.tensor(sizes, dtype_name(dtype), memory, name, axis)


def full(shape: Any, fill_value: Any, dtype: Any, *, buffer: Any = None, name: str = "", **_: Any) -> View:
    """A tensor of one number. Zeros in PSUM cost nothing where products are added to them."""
    made = ndarray(shape, dtype, buffer=buffer, name=name)
    if made.tensor.memory == "psum" and fill_value == 0:
        made.tensor.is_zero |= set(range(made.tensor.blocks))
    elif made.tensor.memory == "hbm":
        store(made, fill_value)
    else:
        current().do(calls.memset(made.shape, fill_value, made.tensor.dtype), made)
    return made


def zeros(shape: Any, dtype: Any, **words: Any) -> View:
    """A tensor of zeros."""
    return full(shape, 0.0, dtype, **words)


def ones(shape: Any, dtype: Any, **words: Any) -> View:
    """A tensor of ones."""
    return full(shape, 1.0, dtype, **words)


def empty_like(a: View, dtype: Any = None, **words: Any) -> View:
    """A tensor of that shape that holds nothing yet."""
    return ndarray(a.shape, dtype or a.dtype, **words)


def zeros_like(a: View, dtype: Any = None, **words: Any) -> View:
    """Zeros of that shape."""
    return zeros(a.shape, dtype or a.dtype, **words)


def shared_constant(constant: Any, dtype: Any = None, **_: Any) -> View:
    """A tensor in device memory with these values, an array or the file of one."""
    constant = np.load(constant) if isinstance(constant, str) else constant
    name = dtype_name(dtype if dtype is not None else constant.dtype)
    return current().constant(as_held("a constant", np.asarray(constant), name), name)


def shared_identity_matrix(n: int, dtype: Any = np.uint8, **_: Any) -> View:
    """[n, n] with ones on the diagonal: in device memory, or in SBUF where the dialect has it there."""
    if not current().dialect.identity_on_chip:
        return shared_constant(np.identity(n), dtype)
    name = dtype_name(dtype)

    def make() -> View:
        found = current().tensor((n, n), name, "sbuf")
        calls.load(shared_constant(np.identity(n), name)).write(found, None)
        return found

    current().settle()
    return current().once(("identity", n, name), make)


def load(src: View, *, mask: Any = None, dtype: Any = None, **_: Any) -> View:
    """A tile in SBUF from device memory; its first axis is the partitions."""
    return tile_of(calls.load(src), mask, dtype)


def load_transpose2d(src: View, *, mask: Any = None, dtype: Any = None, **_: Any) -> View:
    """[F, P] of a tensor [P, F] in device memory."""
    return tile_of(calls.load_transposed(src), mask, dtype)


def store(dst: View, value: Any, *, mask: Any = None, **_: Any) -> None:
    """Writes a tile, or a number, to device memory."""
    calls.store(dst, value, mask)


def copy(src: View, *, mask: Any = None, dtype: Any = None, **_: Any) -> View:
    """The same values in a new tile."""
    return tile_of(calls.tensor_copy(src), mask, dtype)


def static_cast(value: Any, dtype: Any, *, mask: Any = None, **_: Any) -> Any:
    """A tile, or an array of the host's, in another dtype."""
    return (
        tile_of(calls.tensor_copy(value), mask, dtype) if isinstance(value, View) else np.asarray(value).astype(dtype)
    )


def expand_dims(data: View, axis: int, **_: Any) -> View:
    """With one more axis, of size 1."""
    return data.expand_dims(axis)


def broadcast_to(src: View, *, shape: Sequence[int], **_: Any) -> View:
    """The same values for every partition and along axes of size 1."""
    return calls.broadcast_to(src, tuple(int(count) for count in shape))


def matmul(x: View, y: View, *, transpose_x: bool = False, mask: Any = None, **_: Any) -> View:
    """x @ y in PSUM."""
    return tile_of(calls.matmul(x, y, transpose_x), mask)


def transpose(x: View, *, dtype: Any = None, mask: Any = None, **_: Any) -> View:
    """[F, P] of [P, F], in PSUM."""
    return tile_of(calls.nc_transpose(calls.in_sbuf(x)), mask, dtype)


def where(condition: View, x: Any, y: Any, *, dtype: Any = None, mask: Any = None, **_: Any) -> View:
    """x where the condition holds, else y."""
    return tile_of(calls.select(condition, x, y), mask, dtype)


def loop_reduce(
    x: View, op: Any, loop_indices: Sequence[Any], *, dtype: Any = None, mask: Any = None, **_: Any
) -> View:
    """x in the first iteration of all loops, later the target op x."""
    return tile_of(calls.loop_reduce(x, op, loop_indices), mask, dtype)


def _rounding(name: str) -> Callable[..., View]:
    def function(x: Any, *, dtype: Any = None, mask: Any = None, **_: Any) -> View:
        return tile_of(calls.tensor_copy(calls.rounded(name, x)), mask, dtype or x.dtype)

    return _named(function, name, f"{name} of each element.")


def negative(x: View, *, dtype: Any = None, mask: Any = None, **_: Any) -> View:
    """-x."""
    return tile_of(calls.binary("multiply", x, -1), mask, dtype)


def mean(x: View, axis: Any, *, dtype: Any = None, mask: Any = None, keepdims: bool = False, **_: Any) -> View:
    """The mean over free axes."""
    axes = axis if isinstance(axis, Sequence) else (axis,)
    total = tile_of(calls.tensor_reduce("add", x, axis, keepdims=keepdims), mask, "float32")
    return tile_of(calls.binary("multiply", total, 1.0 / math.prod(x.shape[at] for at in axes)), None, dtype or x.dtype)


def program_id(axis: int) -> int:
    """Which instance of the grid this is; a launch without a grid has one instance.

    Raises:
        KernelError: the grid has no such axis.
    """
    here = current()
    _check_axis("program_id", axis)
    return here.program[axis] if here.grid else 0


def _check_axis(what: str, axis: int) -> None:
    grid = current().grid
    if axis not in range(len(grid) or 1):
        raise wrong(f"{what}({axis}) of a launch on the grid {list(grid)}, which has {len(grid)} axes, from 0 on")


def num_programs(axes: Any = None) -> Any:
    """How many instances there are: in all, along one axis, or along each of some."""
    grid = current().grid
    if axes is None:
        return math.prod(grid)
    if isinstance(axes, int):
        _check_axis("num_programs", axes)
        return grid[axes] if grid else 1
    return tuple(num_programs(axis) for axis in axes)


def program_ndim() -> int:
    """Axes of the grid."""
    return len(current().grid)


def device_print(prefix: str, x: Any, **_: Any) -> None:
    """Nothing: what a tile holds is known when the program runs, not while it is traced."""


def _binary(name: str) -> Callable[..., View]:
    def function(x: Any, y: Any, *, dtype: Any = None, mask: Any = None, **_: Any) -> View:
        return tile_of(calls.binary(name, x, y), mask, dtype)

    return _named(function, name, f"x {name} y, elementwise.")


def _unary(name: str) -> Callable[..., View]:
    def function(x: Any, *, dtype: Any = None, mask: Any = None, **_: Any) -> View:
        return tile_of(calls.unary(name, x), mask, dtype)

    return _named(function, name, f"{name} of each element.")


def _reduction(name: str) -> Callable[..., View]:
    def function(x: Any, axis: Any, *, dtype: Any = None, mask: Any = None, keepdims: bool = False, **_: Any) -> View:
        return tile_of(calls.tensor_reduce(name, x, axis, keepdims=keepdims), mask, dtype)

    return _named(function, name, f"The {name} over free axes.")


def _named(function: Callable[..., View], name: str, doc: str) -> Callable[..., View]:
    function.__name__, function.__qualname__, function.__doc__ = name, name, doc
    return function


_ARITHMETIC = ("add", "subtract", "multiply", "divide", "maximum", "minimum", "power", "mod", "fmod")
_LOGIC = (*calls.COMPARISONS, *calls.LOGICAL, *BITS)
globals().update({name: name for name in later.DTYPES})
globals().update({name: _binary(name) for name in (*_ARITHMETIC, *_LOGIC)})
globals().update({name: _unary(name) for name in ACTIVATION if name not in ("copy", "absolute")})
globals().update({name: _rounding(name) for name in ("floor", "ceil", "trunc")})
globals().update({name: _reduction(name) for name in ("sum", "max", "min", "prod")})

__all__ = ["affine_range", "arange", "ds", "sequential_range", "static_range"]
