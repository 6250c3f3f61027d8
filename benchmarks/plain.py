"""Networks as a compiler without ideas would write them: a list of instructions for each operator, one after the other.

Each instruction is what its operator can't do without on its engine: products in tiles of the array, one pass out of
PSUM with bias and function, one pass for each step of a softmax or normalisation, turns where the next operator reads
along the other axis. Weights lie in DRAM as they are used, so that a transfer is as quick as the bytes are.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from tests.isa.examples import dram, psum, sbuf
from tvm_neuron.hw import Device
from tvm_neuron.isa import (
    Activation,
    DmaCopy,
    Instruction,
    Matmul,
    ScalarTensorTensor,
    TensorCopy,
    TensorReduce,
    TensorScalar,
    TensorTensor,
    Transpose,
)
from tvm_neuron.isa.engines import BY_NAME
from tvm_neuron.sim.clock import clock_hz

Work = list[tuple[int, Instruction]]  # how often, what


def in_turn_us(operators: Iterator[Work], device: Device) -> float:
    """The sum over operators of their busiest engine's time, and of each of their engines' latency once.

    The steps of an operator on engines that read late need each other's results, so they take their latency each time;
    products follow one another without, and transfers overlap theirs.
    """
    total = 0.0
    for work in operators:
        busy: dict[str, float] = {}
        first: dict[str, float] = {}
        for times, instruction in work:
            instruction.check(device)
            engine, cost = instruction.engine, instruction.cost(device)
            cycle_us = 1e6 / clock_hz(device, engine)
            each = cost.busy_cycles + (cost.latency_cycles if BY_NAME[engine].reads_late else 0)
            busy[engine] = busy.get(engine, 0.0) + times * each * cycle_us
            first[engine] = cost.latency_cycles * cycle_us
        total += max(busy.values()) + sum(first.values())
    return total


@dataclass(frozen=True)
class Plain:
    """Operators on one device."""

    device: Device

    def convolution(self, depth: int, channels: int, kernel: int, size: int, is_joined: bool = False) -> Work:
        """To `channels` of `size` x `size` pixels, with a ReLU; `is_joined`: a residual is added on the way out.

        Taps of one row of the kernel share the array's rows where the channels leave some free.
        """
        taps = min(kernel, max(1, 128 // depth))
        rows, columns = min(128, depth * taps), min(self.device.pe_columns, channels)
        steps = ceil(depth * taps / 128) * ceil(kernel / taps) * kernel
        parts = ceil(size / max(1, self.device.moving_max_elems // size))
        pixels, tiles = ceil(size / parts) * size, ceil(channels / columns)
        out, result = psum(columns, pixels), sbuf(columns, pixels)
        ends: list[Instruction] = [Activation(result, out, 1.0, sbuf(columns, 1), "relu")]
        if is_joined:
            ends.insert(0, ScalarTensorTensor(result, out, sbuf(columns, pixels), 0.0, "add", "add"))
        return [
            (1, self._weights(depth * kernel * kernel, channels)),
            (tiles * parts * steps, Matmul(sbuf(rows, columns), sbuf(rows, pixels), out, ())),
            *((tiles * parts, end) for end in ends),
        ]

    def dense(self, depth: int, width: int, tokens: int, function: str = "copy") -> Work:
        """[width, tokens] with a bias and a function."""
        tiles = ceil(width / self.device.pe_columns)
        columns = min(self.device.pe_columns, width)
        out = psum(columns, tokens)
        return [
            (1, self._weights(depth, width)),
            (tiles * ceil(depth / 128), Matmul(sbuf(128, columns), sbuf(128, tokens), out, ())),
            (tiles, Activation(sbuf(columns, tokens), out, 1.0, sbuf(columns, 1), function)),
        ]

    def scores(self, heads: int, tokens: int, channels: int) -> Work:
        """Of each head [tokens, tokens]: queries times keys, scaled, with a mask."""
        rows = min(tokens, self.device.pe_columns)
        out = psum(rows, tokens)
        masked = ScalarTensorTensor(sbuf(rows, tokens), out, sbuf(rows, tokens), 0.125, "multiply", "add")
        times = heads * ceil(tokens / rows)
        return [(times, Matmul(sbuf(channels, rows), sbuf(channels, tokens), out, ())), (times, masked)]

    def softmax(self, heads: int, tokens: int) -> Work:
        """Along the free axis: the largest, exp, the sum, its reciprocal, a product."""
        whole, one = sbuf(tokens, tokens), sbuf(tokens, 1)
        return [
            (heads, TensorReduce(one, whole, "max", 1)),
            (heads, Activation(whole, whole, 1.0, one, "exp")),
            (heads, TensorReduce(one, whole, "add", 1)),
            (heads, Activation(one, one, 1.0, 0.0, "reciprocal")),
            (heads, TensorScalar(whole, whole, one, 0.0, "multiply", "bypass", 0)),
        ]

    def context(self, heads: int, tokens: int, channels: int) -> Work:
        """Of each head [channels, tokens]: values times shares, which are turned before."""
        out = psum(channels, tokens)
        return [
            *self._turned(heads * tokens, tokens),
            (heads, Matmul(sbuf(tokens, channels), sbuf(tokens, tokens), out, ())),
            (heads, Activation(sbuf(channels, tokens), out, 1.0, 0.0, "copy")),
        ]

    def residual_norm(self, width: int, tokens: int) -> Work:
        """Tokens come on the partitions for a sum, a LayerNormalization along the free axis, and go back."""
        tiles = ceil(tokens / 128)
        whole, one = sbuf(128, width), sbuf(128, 1)
        steps: tuple[Instruction, ...] = (
            TensorTensor(whole, whole, whole, "add"),
            TensorReduce(one, whole, "add", 1),
            TensorScalar(whole, whole, one, 0.0, "subtract", "bypass", 0),
            Activation(whole, whole, 1.0, 0.0, "square"),
            TensorReduce(one, whole, "add", 1),
            Activation(one, one, 1.0, 0.0, "rsqrt"),
            TensorScalar(whole, whole, one, 0.0, "multiply", "bypass", 0),
            TensorTensor(whole, whole, whole, "multiply"),
            TensorTensor(whole, whole, whole, "add"),
        )
        return [*((tiles, step) for step in steps), *self._turned(tokens, width), *self._turned(width, tokens)]

    def pool(self, channels: int, window: int, size: int, op: str) -> Work:
        """Windows of `window` elements, to `size` x `size` pixels."""
        rows = min(128, channels)
        reduced = TensorReduce(sbuf(rows, size * size), sbuf(rows, size * size, window), op, 1)
        return [(ceil(channels / 128), reduced)]

    def _turned(self, rows: int, columns: int) -> Work:
        """[rows, columns] becomes [columns, rows], in squares that the array takes, and out of PSUM."""
        side = min(self.device.pe_columns, columns)
        out = psum(side, 128)
        times = ceil(rows / 128) * ceil(columns / side)
        return [(times, Transpose(out, sbuf(128, side))), (times, TensorCopy(sbuf(side, 128), out))]

    def _weights(self, depth: int, width: int) -> Instruction:
        rows = min(128, depth)
        each = ceil(depth / rows) * width
        return DmaCopy(sbuf(rows, each), dram(rows, each), 0)


_RESNETS = {18: (2, 2, 2, 2), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3)}


def resnet(plain: Plain, layers: int = 50, batch: int = 1) -> Iterator[Work]:
    """224 x 224; blocks of two convolutions in the smallest, else bottlenecks. Weights come once for all images."""
    for work in _resnet(plain, layers):
        yield [(times if isinstance(one, DmaCopy) else times * batch, one) for times, one in work]
    yield plain.dense(512 if layers == 18 else 2048, 1000, batch)


def _resnet(plain: Plain, layers: int) -> Iterator[Work]:
    """Of one image, but for the last layer."""
    yield plain.convolution(3, 64, 7, 112)
    yield plain.pool(64, 9, 56, "max")
    depth, wider = 64, 1 if layers == 18 else 4
    for stage, blocks in enumerate(_RESNETS[layers]):
        width, size = 64 << stage, 56 >> stage
        for block in range(blocks):
            before = size * 2 if block == 0 and stage else size
            if wider == 1:
                yield plain.convolution(depth, width, 3, size)
            else:
                yield plain.convolution(depth, width, 1, before)
                yield plain.convolution(width, width, 3, size)
            if block == 0 and depth != wider * width:
                yield plain.convolution(depth, wider * width, 1, size)
            yield plain.convolution(width, wider * width, 3 if wider == 1 else 1, size, is_joined=True)
            depth = wider * width
    yield plain.pool(depth, 49, 1, "add")


def vgg16(plain: Plain) -> Iterator[Work]:
    """Batch 1, 224 x 224."""
    depth = 3
    for stage, (width, count) in enumerate(((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))):
        for _ in range(count):
            yield plain.convolution(depth, width, 3, 224 >> stage)
            depth = width
        yield plain.pool(width, 4, 112 >> stage, "max")
    for depth, width in ((512 * 49, 4096), (4096, 4096), (4096, 1000)):
        yield plain.dense(depth, width, 1)


def bert(
    plain: Plain, batch: int, tokens: int = 128, hidden: int = 768, heads: int = 12, layers: int = 12
) -> Iterator[Work]:
    """The layers of the encoder."""
    columns = tokens * batch
    for _ in range(layers):
        for _ in range(3):
            yield plain.dense(hidden, hidden, columns)
        yield plain.scores(heads * batch, tokens, hidden // heads)
        yield plain.softmax(heads * batch, tokens)
        yield plain.context(heads * batch, tokens, hidden // heads)
        yield plain.dense(hidden, hidden, columns)
        yield plain.residual_norm(hidden, columns)
        yield plain.dense(hidden, 4 * hidden, columns, "erf")
        yield plain.dense(4 * hidden, hidden, columns)
        yield plain.residual_norm(hidden, columns)
