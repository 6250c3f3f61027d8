"""What TVM's tile primitives for `trn` do, one function of TIRx for each family; arithmetic in float32."""

# mypy: ignore-errors
# ruff: noqa: N806, N812 - as TVM's own scripts are written
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx
from tvm.tirx.layout import F, P, S, TileLayout

SHAPE = (128, 512)
TILE = TileLayout(S[SHAPE : (1 @ P, 1 @ F)])
COLUMN = TileLayout(S[(128, 1) : (1 @ P, 1 @ F)])
ROWS = TileLayout(S[SHAPE : (512, 1)])
SQUARE = TileLayout(S[(128, 128) : (128, 1)])
ONES = TileLayout(S[(128, 1) : (1, 1)])


def elementwise(compute):
    """B = compute(A) by tiles; `compute` is a macro of the tile of B and that of A."""

    @T.prim_func
    def kernel(a: T.handle, b: T.handle) -> None:
        T.func_attr({"num_inputs": 1})
        A = T.match_buffer(a, SHAPE, "float32", layout=ROWS)
        B = T.match_buffer(b, SHAPE, "float32", layout=ROWS)
        T.device_entry()
        A_sbuf = T.alloc_buffer(SHAPE, "float32", scope="trn.sbuf", layout=TILE)
        B_sbuf = T.alloc_buffer(SHAPE, "float32", scope="trn.sbuf", layout=TILE)
        Tx.copy(A_sbuf, A)
        compute(B_sbuf, A_sbuf)
        Tx.copy(B, B_sbuf)

    return kernel


def reducing(compute):
    """C = compute(A), one value for each row."""

    @T.prim_func
    def kernel(a: T.handle, c: T.handle) -> None:
        T.func_attr({"num_inputs": 1})
        A = T.match_buffer(a, SHAPE, "float32", layout=ROWS)
        C = T.match_buffer(c, (128, 1), "float32", layout=ONES)
        T.device_entry()
        A_sbuf = T.alloc_buffer(SHAPE, "float32", scope="trn.sbuf", layout=TILE)
        B_sbuf = T.alloc_buffer(SHAPE, "float32", scope="trn.sbuf", layout=TILE)
        C_sbuf = T.alloc_buffer((128, 1), "float32", scope="trn.sbuf", layout=COLUMN)
        Tx.copy(A_sbuf, A)
        compute(B_sbuf, C_sbuf, A_sbuf)
        Tx.copy(C, C_sbuf)

    return kernel


@T.prim_func
def product(a: T.handle, b: T.handle, c: T.handle) -> None:
    """C = A @ B."""
    T.func_attr({"num_inputs": 2})
    A = T.match_buffer(a, (128, 128), "float32", layout=SQUARE)
    B = T.match_buffer(b, (128, 128), "float32", layout=SQUARE)
    C = T.match_buffer(c, (128, 128), "float32", layout=SQUARE)
    T.device_entry()
    A_sbuf = T.alloc_buffer((128, 128), "float32", scope="trn.sbuf", layout=TileLayout(S[(128, 128) : (1 @ F, 1 @ P)]))
    B_sbuf = T.alloc_buffer((128, 128), "float32", scope="trn.sbuf", layout=TileLayout(S[(128, 128) : (1 @ P, 1 @ F)]))
    C_sbuf = T.alloc_buffer((128, 128), "float32", scope="trn.sbuf", layout=TileLayout(S[(128, 128) : (1 @ P, 1 @ F)]))
    Tx.copy(A_sbuf, A)
    Tx.copy(B_sbuf, B)
    Tx.gemm(C_sbuf, A_sbuf, B_sbuf, C_sbuf)
    Tx.copy(C, C_sbuf)


@T.prim_func
def on_no_core(a: T.handle, b: T.handle) -> None:
    """A loop over elements of device memory, which is no instruction."""
    T.func_attr({"num_inputs": 1})
    A = T.match_buffer(a, (4,), "float32")
    B = T.match_buffer(b, (4,), "float32")
    for i in range(4):
        B[i] = A[i]
