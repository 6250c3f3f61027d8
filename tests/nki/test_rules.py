"""Operands that the core does not take, one wrong thing at a time, are refused with the kernel's own line."""

from collections.abc import Callable

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest

from tvm_neuron.errors import NeuronError

P, N = 128, 64
_TYPE, _SHAPE, _GPSIMD = (
    "it is float32: cast it",
    "an instruction repeats nothing but a column",
    "by GpSimd, which has SBUF",
)


def full(*shape: int, dtype: str = "float32", buffer: object = nl.sbuf) -> nl.View:
    """A tile of ones."""
    found = nl.ndarray(shape, dtype, buffer=buffer)
    nisa.memset(found, 1)
    return found


def empty(*shape: int, dtype: str = "float32", buffer: object = nl.sbuf) -> nl.View:
    return nl.ndarray(shape, dtype, buffer=buffer)


def tile(**words: object) -> nl.View:
    return full(P, N, **words)


def column(rows: int = P, dtype: str = "float32") -> nl.View:
    return full(rows, 1, dtype=dtype)


def in_psum() -> nl.View:
    return tile(buffer=nl.psum)


# Of each call what is right, by operand; then what is wrong in place of one of them, and what is said of it.
RIGHT: dict[str, Callable[[], dict[str, object]]] = {
    "tensor_tensor": lambda: {"dst": empty(P, N), "data1": tile(), "data2": tile(), "op": nl.add},
    "tensor_scalar": lambda: {
        "dst": empty(P, N), "data": tile(), "op0": nl.add, "operand0": column(), "op1": nl.add, "operand1": column(),
    },
    "scalar_tensor_tensor": lambda: {
        "dst": empty(P, N), "data": tile(), "op0": nl.add, "operand0": column(), "op1": nl.add, "operand1": tile(),
    },
    "tensor_scalar_reduce": lambda: {
        "dst": empty(P, N), "data": tile(), "op0": nl.add, "operand0": column(), "reduce_op": nl.add,
        "reduce_res": empty(P, 1),
    },
    "tensor_tensor_scan": lambda: {
        "dst": empty(P, N), "data0": tile(), "data1": tile(), "initial": column(dtype="bfloat16"), "op0": nl.multiply,
        "op1": nl.add,
    },
    "activation": lambda: {
        "dst": empty(P, N), "op": nl.exp, "data": tile(), "bias": column(dtype="bfloat16"), "scale": column(),
    },
    "activation_reduce": lambda: {
        "dst": empty(P, N), "op": nl.exp, "data": tile(), "reduce_op": nl.add, "reduce_res": empty(P, 1),
    },
    "tensor_reduce": lambda: {"dst": empty(P, 4), "op": nl.add, "data": full(P, 4, 16), "axis": 2},
    "tensor_copy": lambda: {"dst": empty(P, N), "src": tile(), "engine": nisa.gpsimd_engine},
    "tensor_copy_predicated": lambda: {"dst": tile(), "src": tile(), "predicate": tile(dtype="uint8")},
    "select_reduce": lambda: {
        "dst": empty(P, N), "predicate": tile(dtype="uint8"), "on_true": tile(), "on_false": column(),
    },
    "memset": lambda: {"dst": empty(P, N), "value": 1.0, "engine": nisa.gpsimd_engine},
    "reciprocal": lambda: {"dst": empty(P, N), "data": tile()},
    "iota": lambda: {"dst": empty(P, N, dtype="int32"), "pattern": [[1, N]], "offset": 0, "channel_multiplier": 1},
    "affine_select": lambda: {
        "dst": empty(P, N), "pattern": [[1, N]], "channel_multiplier": 1, "on_true_tile": tile(), "on_false_value": 0.0,
        "cmp_op": nl.greater_equal,
    },
    "bn_stats": lambda: {"dst": empty(P, 6), "data": tile()},
    "bn_aggr": lambda: {"dst": empty(P, 2), "data": full(P, 12)},
    "max8": lambda: {"dst": empty(P, 8), "src": tile()},
    "nc_find_index8": lambda: {"dst": empty(P, 8, dtype="uint16"), "data": tile(), "vals": full(P, 8)},
    "nc_match_replace8": lambda: {"dst": empty(P, N), "data": tile(), "vals": full(P, 8), "imm": 0.0},
    "local_gather": lambda: {"dst": empty(P, 16), "src_buffer": tile(), "index": column(dtype="uint16")},
    "nc_stream_shuffle": lambda: {"dst": empty(P, N), "src": tile(), "shuffle_mask": [0] * 32},
    "nc_transpose": lambda: {"dst": empty(N, P, buffer=nl.psum), "data": tile(), "engine": nisa.tensor_engine},
    "nc_matmul": lambda: {"dst": empty(N, N, buffer=nl.psum), "stationary": tile(), "moving": tile()},
    "dma_copy": lambda: {"dst": empty(P, N), "src": tile()},
    "dma_transpose": lambda: {"dst": empty(N, P), "src": tile()},
}  # fmt: skip

WRONG: list[tuple[str, str, Callable[[], object], str]] = [
    ("tensor_tensor", "data2", lambda: full(1, N), rf"data2 sbuf\[1, 64\]; it is of \[128, 64\], as data1: {_SHAPE}"),
    ("tensor_tensor", "data2", column, _SHAPE),
    ("tensor_tensor", "data1", column, _SHAPE),
    ("tensor_tensor", "data2", lambda: full(64, N), _SHAPE),
    ("tensor_tensor", "data2", lambda: 2.0, r"data2=2.0; it is a tile of \[128, 64\], as data1: make one"),
    ("tensor_tensor", "dst", lambda: empty(P, 32), r"\[128, 32\] where shape \[128, 64\] is meant"),
    ("tensor_tensor", "dst", lambda: empty(64, P), r"\[64, 128\] can't become \[128, 64\]"),
    ("tensor_tensor", "engine", lambda: nisa.scalar_engine, "on engine scalar; its instruction is that of vector and"),
    ("tensor_tensor", "engine", lambda: nisa.tensor_engine, "on engine tensor; its instruction is that of vector and"),
    ("tensor_tensor", "op", lambda: nl.exp, "tensor_tensor has no operator exp"),
    ("tensor_tensor", "op", lambda: nl.bitwise_and, "operations on bits take int32 alone"),
    ("tensor_scalar", "operand0", lambda: column(dtype="bfloat16"), rf"operand0 sbuf\[128, 1\], bfloat16; {_TYPE}"),
    ("tensor_scalar", "operand1", lambda: column(dtype="int32"), _TYPE),
    ("tensor_scalar", "operand0", lambda: column(64), rf"it is \[128, 1\]: {_SHAPE}"),
    ("tensor_scalar", "operand0", tile, rf"it is \[128, 1\]: {_SHAPE}"),
    ("tensor_scalar", "operand0", lambda: "2", "a scalar operand is str '2'; it is a number or a tile"),
    ("tensor_scalar", "op1", lambda: nl.bitwise_and, "an operator on bits and one on numbers; both are of one kind"),
    ("tensor_scalar", "op0", lambda: nl.left_shift, "an operator on bits and one on numbers; both are of one kind"),
    ("tensor_scalar", "engine", lambda: nisa.tensor_engine, "that of vector and scalar and gpsimd"),
    ("scalar_tensor_tensor", "operand0", lambda: column(dtype="bfloat16"), _TYPE),
    ("scalar_tensor_tensor", "operand1", column, _SHAPE),
    ("scalar_tensor_tensor", "operand1", lambda: full(1, N), _SHAPE),
    ("scalar_tensor_tensor", "operand1", lambda: 1.0, r"operand1=1.0; it is a tile of \[128, 64\], as data"),
    ("tensor_scalar_reduce", "operand0", lambda: column(dtype="bfloat16"), _TYPE),
    ("tensor_scalar_reduce", "reduce_res", lambda: empty(P, 2), rf"it is \[128, 1\]: {_SHAPE}"),
    ("tensor_scalar_reduce", "reduce_op", lambda: nl.subtract, "tensor_scalar_reduce has no operator subtract"),
    ("tensor_tensor_scan", "data0", column, _SHAPE),
    ("tensor_tensor_scan", "initial", lambda: column(64), _SHAPE),
    ("tensor_tensor_scan", "op0", lambda: nl.bitwise_and, "tensor_tensor_scan has no operator bitwise_and"),
    ("activation", "bias", lambda: full(1, N), r"a bias is \[128, 1\], one number a partition"),
    ("activation", "bias", lambda: column(dtype="int32"), "it is float32 or bfloat16 or float16: cast it"),
    ("activation", "scale", lambda: column(dtype="bfloat16"), _TYPE),
    ("activation", "scale", lambda: column(64), _SHAPE),
    ("activation", "data", lambda: empty(P, N, buffer=nl.shared_hbm), "engines read SBUF and PSUM: load it first"),
    ("activation", "op", lambda: nl.add, "activation has no operator add"),
    ("activation_reduce", "reduce_res", lambda: empty(P, 2), _SHAPE),
    ("activation_reduce", "reduce_res", lambda: None, r"reduce_res=None; it is a tile \[128, 1\]"),
    ("activation_reduce", "reduce_op", lambda: nl.max, "the model has reset_reduce and add"),
    ("tensor_reduce", "axis", lambda: 1, r"over axes \[1\]; they are the last ones"),
    ("tensor_reduce", "axis", lambda: 0, "axis 0, the partitions"),
    ("tensor_reduce", "axis", lambda: 5, "it has axes 0 to 2"),
    ("tensor_reduce", "dst", lambda: empty(P, 2), r"\[128, 2\] where shape \[128, 4\] is meant"),
    ("tensor_reduce", "op", lambda: nl.subtract, "a reduction has no operator subtract"),
    ("tensor_copy", "src", in_psum, _GPSIMD),
    ("tensor_copy", "dst", lambda: empty(P, N, buffer=nl.psum), _GPSIMD),
    ("tensor_copy", "src", lambda: full(1, N), r"\[128, 64\] where shape \[1, 64\] is meant"),
    ("tensor_copy", "engine", lambda: nisa.tensor_engine, "tensor_copy on engine tensor"),
    ("tensor_copy", "src", lambda: full(1, 1 << 16 | 8, dtype="int8"), "65544 elements of each partition; an .* 65536"),
    ("tensor_copy_predicated", "predicate", tile, "it is uint8 or uint16 or uint32 or bool: cast it"),
    ("tensor_copy_predicated", "predicate", lambda: column(dtype="uint8"), _SHAPE),
    ("tensor_copy_predicated", "src", column, _SHAPE),
    ("select_reduce", "predicate", lambda: column(dtype="uint8"), _SHAPE),
    ("select_reduce", "on_false", tile, _SHAPE),
    ("select_reduce", "reduce_res", lambda: empty(P, 2), _SHAPE),
    ("memset", "value", column, "the value of a memset is Tile"),
    ("memset", "dst", lambda: empty(P, N, buffer=nl.psum), _GPSIMD),
    ("memset", "engine", lambda: nisa.scalar_engine, "memset on engine scalar"),
    ("reciprocal", "dst", lambda: empty(64, P), r"\[64, 128\] can't become \[128, 64\]"),
    ("iota", "dst", lambda: empty(P, N, dtype="int32", buffer=nl.psum), "lies in PSUM; it must be in SBUF"),
    ("iota", "pattern", lambda: [[1, 32]], "its counts are those of the free axes"),
    ("iota", "pattern", lambda: [[1, 2]] * 6, "it has at most 4 axes"),
    ("affine_select", "dst", lambda: empty(P, N, buffer=nl.psum), "lies in PSUM; it must be in SBUF"),
    ("affine_select", "on_true_tile", lambda: full(64, N), r"\[128, 64\] where shape \[64, 64\] is meant"),
    ("affine_select", "on_false_value", tile, "on_false_value of affine_select is Tile"),
    ("affine_select", "cmp_op", lambda: nl.add, "affine_select has no operator add; it has equal, not_equal"),
    ("bn_stats", "data", lambda: full(P, 600), "it takes at most 512 elements"),
    ("bn_stats", "dst", lambda: empty(P, 5), r"to \[128, 5\]; it takes at most 512 elements to \[128, 6\]"),
    ("bn_aggr", "data", lambda: full(P, 10), "it takes threes of numbers"),
    ("max8", "src", lambda: full(P, 4), "4 elements of each partition; at least 8 are needed"),
    ("max8", "src", lambda: full(P, 20000, dtype="bfloat16"), "at most 16384 are searched"),
    ("max8", "dst", lambda: empty(P, 4), r"\[128, 4\] where shape \[128, 8\] is meant"),
    ("nc_find_index8", "dst", lambda: empty(P, 8), "indices become float32; they must be int32, uint32, uint16"),
    ("nc_find_index8", "vals", lambda: full(P, 4), r"values is \[128, 4\]; it must be \[128, 8\]"),
    ("nc_match_replace8", "imm", column, "imm of nc_match_replace8 is Tile"),
    ("nc_match_replace8", "dst_idx", lambda: empty(P, 8), "indices become float32"),
    ("local_gather", "index", lambda: column(dtype="int32"), r"index sbuf\[128, 1\], int32; it is uint16: cast it"),
    ("local_gather", "index", lambda: column(64, dtype="uint16"), "all have the same partitions"),
    ("nc_stream_shuffle", "shuffle_mask", lambda: [0] * 31, "it takes 32 numbers"),
    ("nc_stream_shuffle", "shuffle_mask", lambda: [40] * 32, "a partition from 0 to 31 of its group"),
    ("nc_stream_shuffle", "dst", lambda: empty(P, N, dtype="bfloat16"), "it converts nothing"),
    ("nc_transpose", "data", in_psum, "the Tensor engine reads SBUF: copy it first"),
    ("nc_transpose", "dst", lambda: empty(N, P), "lies in SBUF; it must be in PSUM"),
    ("nc_transpose", "engine", lambda: nisa.gpsimd_engine, "that of tensor and vector"),
    ("nc_matmul", "stationary", in_psum, "its operands lie in SBUF: copy it first"),
    ("nc_matmul", "moving", lambda: full(64, N), r"they are \[K, M\] and \[K, \*N\]"),
    ("nc_matmul", "moving", lambda: tile(dtype="bfloat16"), "float32 is multiplied by float32: cast one operand"),
    ("nc_matmul", "dst", lambda: empty(N, N), "lies in SBUF; it must be in PSUM"),
    ("nc_matmul", "dst", lambda: empty(N, N, dtype="bfloat16", buffer=nl.psum), "float32 -> bfloat16"),
    ("dma_copy", "src", in_psum, "the DMA has device memory and SBUF"),
    ("dma_copy", "dst", lambda: empty(P, N, buffer=nl.psum), "the DMA has device memory and SBUF"),
    ("dma_copy", "src", lambda: full(1, N), r"\[128, 64\] where shape \[1, 64\] is meant"),
    ("dma_transpose", "dst", lambda: empty(N, P, buffer=nl.psum), "the DMA has device memory and SBUF"),
    ("dma_transpose", "axes", lambda: (0, 1), "the first axis and the last one change places"),
]


def run(name: str, operands: Callable[[], dict[str, object]]) -> None:
    @nki.jit
    def kernel():  # type: ignore[no-untyped-def]
        getattr(nisa, name)(**operands())
        out = nl.ndarray((1, 4), nl.float32, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out, src=full(1, 4))
        return out

    kernel()


@pytest.mark.parametrize("name", RIGHT)
def test_right_operands(name: str) -> None:
    run(name, RIGHT[name])


@pytest.mark.parametrize(("name", "operand", "given", "said"), WRONG)
def test_a_wrong_operand(name: str, operand: str, given: Callable[[], object], said: str) -> None:
    with pytest.raises(NeuronError, match=said) as caught:
        run(name, lambda: {**RIGHT[name](), operand: given()})
    assert f"{__file__}:" in str(caught.value)


@pytest.mark.parametrize("name", ["tensor_tensor", "scalar_tensor_tensor", "tensor_tensor_scan"])
def test_two_operands_in_psum(name: str) -> None:
    pair = {"tensor_tensor": ("data1", "data2"), "scalar_tensor_tensor": ("data", "operand1")}
    names = pair.get(name, ("data0", "data1"))
    with pytest.raises(NeuronError, match=r"both .*in PSUM"):
        run(name, lambda: {**RIGHT[name](), **{each: in_psum() for each in names}})


@pytest.mark.parametrize("axis", [1, -1, 5])
@pytest.mark.parametrize("function", [nl.program_id, nl.num_programs])
def test_grids_have_no_further_axes(function: Callable[[int], int], axis: int) -> None:
    @nki.jit
    def kernel():  # type: ignore[no-untyped-def]
        return function(axis)

    with pytest.raises(
        NeuronError, match=rf"\({axis}\) of a launch on the grid \[2\], which has 1 axes.*test_rules.py:"
    ):
        kernel[2]()


@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
def test_places_that_are_not_there_are_all_ones(dtype: str) -> None:
    @nki.jit
    def kernel(x):  # type: ignore[no-untyped-def]
        out, data = nl.ndarray((P, 8), dtype, buffer=nl.shared_hbm), empty(P, N)
        nisa.dma_copy(dst=data, src=x)
        found = empty(P, 8, dtype=dtype)
        nisa.nc_find_index8(found, data, full(P, 8))
        nisa.dma_copy(dst=out, src=found)
        return out

    x = np.zeros((P, N), np.float32)
    x[1:, 5] = 1
    wanted = np.full((P, 8), 5)
    wanted[0] = np.iinfo(dtype).max
    assert np.array_equal(kernel(x), wanted)
