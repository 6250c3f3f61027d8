"""The Mamba kernel whose time on a trn1 AWS publishes, as a program: five Vector instructions an iteration.

AWS's tutorial of NKI, "fused Mamba", version 1: batch 1, sequence 512, state 16, 4096 or 256 channels, all in float32.
"""

from tvm_neuron.isa import (
    Activation,
    Affine,
    DmaCopy,
    DramTile,
    Matmul,
    Memset,
    TensorTensor,
    TensorTensorScan,
    Tile,
    affine,
)
from tvm_neuron.program import DramTensor, Loop, Node, Origin, Program

STATES, STEPS, LANES = 16, 512, 128
_TILE_BYTES = 4 * STEPS
_TENSORS = ("delta", "u", "a", "b", "c", "y")


def mamba(channels: int) -> Program:
    """y[channel, t] = sum over states of c[state, t] * scan(exp(delta * a[state]), delta * u * b[state])."""
    shapes = {"a": (channels, STATES), "b": (STATES, STEPS), "c": (STATES, STEPS)}
    tensors = tuple(
        DramTensor(name, "output" if name == "y" else "input", shapes.get(name, (channels, STEPS)), "float32")
        for name in _TENSORS
    )
    ones = _sbuf(12, 1, LANES)
    total = _sbuf(10, LANES, STEPS, ring=(STATES, 0))
    each_tile = (
        Memset(total, 0.0),
        Loop(STATES, _state(ones, total)),
        DmaCopy(_dram("y", STEPS, channel=STEPS * LANES), total, 4),
    )
    return Program(tensors, (Origin("mamba", "kernel"),), (Memset(ones, 1.0), Loop(channels // LANES, each_tile)))


def _state(ones: Tile, total: Tile) -> tuple[Node, ...]:
    """One state of 128 channels; the loads and the other engines' work are done while the Vector engine works."""
    delta, u, delta_a = (_sbuf(slot, LANES, STEPS, ring=(0, 1)) for slot in (0, 2, 4))
    a = _sbuf(13, LANES, 1)
    b, c = (_sbuf(slot, 1, STEPS, ring=(0, 1)) for slot in (14, 16))
    delta_u, delta_bu, scanned, scanned_c = (_sbuf(slot, LANES, STEPS) for slot in (6, 7, 8, 9))
    wide_b, wide_c = (_psum(bank) for bank in (0, 2))
    whole = STEPS * LANES
    return (
        DmaCopy(delta, _dram("delta", STEPS, channel=whole), 0),
        DmaCopy(a, _dram("a", STATES, width=1, channel=STATES * LANES, state=1), 1),
        DmaCopy(u, _dram("u", STEPS, channel=whole), 2),
        DmaCopy(b, _dram("b", STEPS, rows=1, state=STEPS), 3),
        DmaCopy(c, _dram("c", STEPS, rows=1, state=STEPS), 3),
        Activation(delta_a, delta, a, 0.0, "exp"),
        Matmul(ones, b, wide_b, ()),
        Matmul(ones, c, wide_c, ()),
        TensorTensor(delta_u, delta, u, "multiply"),
        TensorTensor(delta_bu, delta_u, wide_b, "multiply"),
        TensorTensorScan(scanned, delta_a, delta_bu, 0.0, "multiply", "add", 0),
        TensorTensor(scanned_c, scanned, wide_c, "multiply"),
        TensorTensor(total, total, scanned_c, "add"),
    )


def _ring(slot: int, turns: tuple[int, int]) -> Affine:
    """The slot and the next one in turn; `turns` is how far each of the two loops moves it on."""
    steps = ((depth, _TILE_BYTES) for depth, turn in enumerate(turns) if turn)
    return affine(slot * _TILE_BYTES, steps, wrap=2 * _TILE_BYTES if any(turns) else 0)


def _sbuf(slot: int, partitions: int, elems: int, ring: tuple[int, int] = (0, 0)) -> Tile:
    return Tile("sbuf", "float32", affine(0), partitions, _ring(slot, ring), ((1, elems),))


def _psum(bank: int) -> Tile:
    return Tile("psum", "float32", affine(0), LANES, _ring(bank, (0, 1)), ((1, STEPS),))


def _dram(tensor: str, row: int, rows: int = LANES, width: int = STEPS, channel: int = 0, state: int = 0) -> DramTile:
    at = affine(0, ((0, channel), (1, state)))
    return DramTile(_TENSORS.index(tensor), "float32", at, ((row, rows), (1, width)))
