"""Random programs on a few bytes of memory, full of tiles that meet: what runs at once must still give the same."""

from hypothesis import strategies as st

from tvm_neuron.isa import (
    Activation,
    Affine,
    DmaCopy,
    DramTile,
    Instruction,
    Matmul,
    Memset,
    ScalarTensorTensor,
    TensorCopy,
    TensorReduce,
    TensorTensor,
    Tile,
    Transpose,
    affine,
)
from tvm_neuron.program import DramTensor, Loop, Node, Origin, Program

ELEMS = 64  # of each partition that the programs use
PARTITIONS = 36  # two groups: a start at 32 leaves four
_IN, _SBUF_OUT, _PSUM_OUT, _SCRATCH = range(4)
TENSORS = (
    DramTensor("x", "input", (PARTITIONS, ELEMS), "bfloat16"),
    DramTensor("sbuf", "output", (PARTITIONS, ELEMS), "bfloat16"),
    DramTensor("psum", "output", (PARTITIONS, ELEMS), "float32"),
    DramTensor("scratch", "scratch", (PARTITIONS, ELEMS), "bfloat16"),
)


def whole(space: str) -> Tile:
    return Tile(space, "bfloat16" if space == "sbuf" else "float32", affine(0), PARTITIONS, affine(0), ((1, ELEMS),))


@st.composite
def addresses(draw: st.DrawFn, counts: tuple[int, ...], extent: int, size: int) -> Affine:
    """An address in bytes below ELEMS * size - extent in every iteration."""
    steps = draw(st.lists(st.sampled_from([0, 0, 4, 8, 16, -4]), min_size=len(counts), max_size=len(counts)))
    wrap = draw(st.sampled_from([0, 0, 16, 32])) * size
    base = draw(st.integers(0, 6)) * 4 * size
    phase = draw(st.integers(0, 3)) * 4 * size if wrap else 0
    where = affine(base, [(d, step * size) for d, step in enumerate(steps)], phase, wrap)
    low, high = where.span(counts)
    if low < 0 or high + extent > ELEMS * size:
        return affine(draw(st.integers(0, 3)) * 4 * size)
    return where


@st.composite
def tiles(draw: st.DrawFn, counts: tuple[int, ...], space: str, shape: tuple[int, ...]) -> Tile:
    size = 2 if space == "sbuf" else 4
    dims, step = [], 1
    for count in reversed(shape[1:]):
        step = max(step, draw(st.sampled_from([1, 1, 2])))
        dims.insert(0, (step, count))
        step *= count
    extent = (sum(s * (c - 1) for s, c in dims) + 1) * size
    partition = affine(0)
    if len(counts) and shape[0] <= 4:
        depth = draw(st.integers(0, len(counts) - 1))
        if counts[depth] <= 2 and draw(st.booleans()):
            partition = affine(0, [(depth, 32)])
    at = draw(addresses(counts, extent, size))
    return Tile(space, "bfloat16" if space == "sbuf" else "float32", partition, shape[0], at, tuple(dims))


@st.composite
def instructions(draw: st.DrawFn, counts: tuple[int, ...], known: list[Tile]) -> Instruction:
    """One instruction in loops that run `counts` times; its tiles are often ones that an earlier one had."""

    def tile(space: str, shape: tuple[int, ...]) -> Tile:
        fits = [t for t in known if t.space == space and t.shape == shape and _depth(t) <= len(counts)]
        fits = [t for t in fits if _inside(t, counts)]
        if fits and draw(st.integers(0, 3)):
            return draw(st.sampled_from(fits))
        known.append(draw(tiles(counts, space, shape)))
        return known[-1]

    space = lambda: draw(st.sampled_from(["sbuf", "psum"]))  # noqa: E731
    shape = draw(st.sampled_from([(4, 4), (4, 2, 2)]))
    kind = draw(
        st.sampled_from(["matmul", "matmul", "act", "act", "tt", "stt", "copy", "reduce", "set", "dma", "turn"])
    )
    scalar = draw(st.sampled_from([1.0, 0.5, -0.25])) if draw(st.booleans()) else tile("sbuf", (4, 1))
    match kind:
        case "matmul":
            first = draw(st.sampled_from(["none", "always", "some"]))
            loops = draw(st.sets(st.integers(0, len(counts) - 1))) if counts else set()
            chosen = None if first == "none" else () if first == "always" else tuple(sorted(loops))
            return Matmul(tile("sbuf", (4, 4)), tile("sbuf", shape), tile("psum", shape), chosen)
        case "act":
            function = draw(st.sampled_from(["relu", "copy", "abs"]))
            return Activation(tile(space(), shape), tile(space(), shape), 0.5, scalar, function)
        case "tt":
            return TensorTensor(tile(space(), shape), tile(space(), shape), tile(space(), shape), "max")
        case "stt":
            return ScalarTensorTensor(
                tile(space(), shape), tile(space(), shape), tile(space(), shape), scalar, "multiply", "min"
            )
        case "copy":
            return TensorCopy(tile(space(), shape), tile(space(), shape))
        case "reduce":
            return TensorReduce(tile(space(), (4, 1)), tile(space(), (4, 4)), "max", 1)
        case "set":
            return Memset(tile(space(), shape), scalar)
        case "turn":
            return Transpose(tile("psum", (4, 4)), tile("sbuf", (4, 4)))
        case _:
            step = draw(st.sampled_from([4, 0]))
            at = affine(draw(st.integers(0, 8)), [(d, step) for d in range(len(counts))])
            dims = ((ELEMS, 4), (1, 4))
            scratch = DramTile(_SCRATCH, "bfloat16", at, dims)
            if draw(st.booleans()):
                return DmaCopy(scratch, tile("sbuf", (4, 4)), 0)
            source = draw(st.sampled_from([scratch, DramTile(_IN, "bfloat16", at, dims)]))
            return DmaCopy(tile("sbuf", (4, 4)), source, draw(st.integers(0, 1)))


def _depth(tile: Tile) -> int:
    return max((d + 1 for d, _ in (*tile.offset.terms, *tile.partition.terms)), default=0)


def _inside(tile: Tile, counts: tuple[int, ...]) -> bool:
    low, high = tile.offset.span(counts)
    last = tile.partition.span(counts)[1]
    size = 2 if tile.space == "sbuf" else 4
    return low >= 0 and high + tile.extent_bytes <= ELEMS * size and last + tile.partitions <= PARTITIONS


@st.composite
def bodies(draw: st.DrawFn, counts: tuple[int, ...], known: list[Tile]) -> tuple[Node, ...]:
    nodes: list[Node] = []
    for _ in range(draw(st.integers(1, 4 if len(counts) else 2))):
        if len(counts) < 3 and draw(st.integers(0, 2)) == 0:
            inner = (*counts, draw(st.integers(1, 3)))
            nodes.append(Loop(inner[-1], draw(bodies(inner, known))))
        else:
            nodes.append(draw(instructions(counts, known)))
    return tuple(nodes)


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Loads both memories, runs something, and writes out what the memories hold then (of PSUM not always)."""
    known: list[Tile] = []
    sbuf, psum = whole("sbuf"), whole("psum")
    dims = ((ELEMS, PARTITIONS), (1, ELEMS))
    dram = [DramTile(index, TENSORS[index].dtype, affine(0), dims) for index in range(4)]
    start: list[Node] = [DmaCopy(sbuf, dram[_IN], 0), DmaCopy(dram[_SCRATCH], dram[_IN], 0), TensorCopy(psum, sbuf)]
    nests = [
        Loop(count, draw(bodies((count,), known)))
        for count in draw(st.lists(st.integers(1, 3), min_size=1, max_size=2))
    ]
    end: list[Node] = [DmaCopy(dram[_SBUF_OUT], sbuf, 0)]
    if draw(st.booleans()):
        copy = Tile("sbuf", "float32", affine(0), PARTITIONS, affine(1024), ((1, ELEMS),))
        end += [TensorCopy(copy, psum), DmaCopy(dram[_PSUM_OUT], copy, 0)]
    return Program(TENSORS, (Origin("a", "random"),), (*start, *nests, *end))
