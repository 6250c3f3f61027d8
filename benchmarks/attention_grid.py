"""Attention blocks of all sizes, drawn by seed: `python -m benchmarks.attention_grid [--sample N] [--chip CHIP]`.

Each is a model of its own, from tokens to their projected mixture, with queries, keys and values from one product or
from three. What is found of each is a record as in `benchmarks.catalogue`.
"""

import argparse
import math
import random
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

from benchmarks.catalogue import records, table
from benchmarks.catalogue.apart import preload, run_apart
from benchmarks.catalogue.measure import Job, measure
from benchmarks.catalogue.reference import keep_reference
from tvm_neuron.sweep import lines

CHIPS = ("inf1", "inf2")
WINDOWS, TOKENS, HEADS, HEAD_SIZES = (1, 64), (1, 300), (1, 16), (16, 32, 48, 64, 96, 128)
MOST_CHANNELS = 1024
LIMITS = 120, 8 * 10**9


@dataclass(frozen=True)
class Block:
    """`windows` sets of `tokens` that attend to each other, with `heads` of `size` channels."""

    windows: int
    tokens: int
    heads: int
    size: int
    is_fused: bool

    @property
    def name(self) -> str:
        """What tells it from others."""
        how = "fused" if self.is_fused else "separate"
        return f"{self.windows}x{self.tokens} tokens, {self.heads} heads of {self.size}, {how}"

    @property
    def channels(self) -> int:
        """Of a token."""
        return self.heads * self.size

    def model(self) -> onnx.ModelProto:
        """Random weights, seeded by the sizes."""
        rng = np.random.default_rng([*self.name.encode()])
        weights: list[TensorProto] = []

        def constant(name: str, array: np.ndarray) -> str:
            weights.append(numpy_helper.from_array(array, name))
            return name

        def dense(x: str, width: int, y: str) -> list[NodeProto]:
            weight = rng.standard_normal((self.channels, width), np.float32) / math.sqrt(self.channels)
            bias = 0.1 * rng.standard_normal(width, np.float32)
            return [
                helper.make_node("MatMul", [x, constant(f"{y}.w", weight)], [f"{y}.0"]),
                helper.make_node("Add", [f"{y}.0", constant(f"{y}.b", bias)], [y]),
            ]

        def reshape(x: str, y: str, *shape: int) -> NodeProto:
            return helper.make_node("Reshape", [x, constant(f"{y}.shape", np.int64(shape))], [y])

        heads = self.windows, self.tokens, self.heads, self.size
        nodes: list[NodeProto] = []
        if self.is_fused:
            nodes += dense("x", 3 * self.channels, "qkv")
            nodes.append(reshape("qkv", "split", self.windows, self.tokens, 3, self.heads, self.size))
            nodes.append(helper.make_node("Transpose", ["split"], ["turned"], perm=[2, 0, 3, 1, 4]))
            for number, part in enumerate("qkv"):
                index = constant(f"{part}.index", np.int64(number))
                nodes.append(helper.make_node("Gather", ["turned", index], [f"{part}.heads"], axis=0))
        else:
            for part in "qkv":
                nodes += [*dense("x", self.channels, part), reshape(part, f"{part}.split", *heads)]
                nodes.append(helper.make_node("Transpose", [f"{part}.split"], [f"{part}.heads"], perm=[0, 2, 1, 3]))
        scale = constant("scale", np.float32(self.size**-0.5))
        nodes += [
            helper.make_node("Transpose", ["k.heads"], ["k.turned"], perm=[0, 1, 3, 2]),
            helper.make_node("Mul", ["q.heads", scale], ["q.scaled"]),
            helper.make_node("MatMul", ["q.scaled", "k.turned"], ["scores"]),
            helper.make_node("Softmax", ["scores"], ["shares"], axis=-1),
            helper.make_node("MatMul", ["shares", "v.heads"], ["mixed"]),
            helper.make_node("Transpose", ["mixed"], ["beside"], perm=[0, 2, 1, 3]),
            reshape("beside", "joined", self.windows, self.tokens, self.channels),
            *dense("joined", self.channels, "y"),
        ]
        shape = (self.windows, self.tokens, self.channels)
        ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("x", "y")]
        graph = helper.make_graph(nodes, self.name, ends[:1], ends[1:], weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def draw(count: int, seed: int) -> Iterator[Block]:
    """Blocks whose windows and tokens are spread evenly over orders of magnitude."""
    rng = random.Random(seed)
    while count:
        windows, tokens = (round(math.exp(rng.uniform(*map(math.log, ends)))) for ends in (WINDOWS, TOKENS))
        block = Block(windows, tokens, rng.randint(*HEADS), rng.choice(HEAD_SIZES), rng.random() < 0.5)
        if block.channels <= MOST_CHANNELS:
            count -= 1
            yield block


def find(block: Block, chip: str, only_time: bool) -> records.Record:
    """Compiles it, asks the clock, and runs it if asked to."""
    with tempfile.TemporaryDirectory() as name:
        folder, found = Path(name), Path(name, "found.json")
        model = block.model()
        onnx.save(model, folder / "model.onnx")
        if not only_time:
            x = np.random.default_rng(0).standard_normal((block.windows, block.tokens, block.channels), np.float32)
            keep_reference(model, {"x": x}, folder)
        stopped = run_apart(measure, (Job(folder, chip, only_time, found),), *LIMITS)
        told = records.read(found) | ({"outcome": "stopped", "message": stopped} if stopped else {})
        return {"name": f"{block.name}, {chip}", "family": "attention", "chip": chip} | told


def main() -> None:
    """Measures, prints a line each, then the means and the worst."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.attention_grid", description=__doc__)
    parser.add_argument("--sample", type=int, default=30, metavar="N", help="how many blocks: %(default)s")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--chip", choices=CHIPS, help="only this one")
    parser.add_argument("--only-time", action="store_true", help="compile and ask the clock; run nothing")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also append what is found to this file")
    options = parser.parse_args()
    preload(["tvm_neuron.relay", "tvm_neuron.codegen.function", "benchmarks.catalogue.measure"])
    chips = (options.chip,) if options.chip else CHIPS
    found: dict[str, list[records.Record]] = {chip: [] for chip in chips}
    for block in draw(options.sample, options.seed):
        for chip in chips:
            record = find(block, chip, options.only_time)
            found[chip].append(record)
            print(table.line(record), flush=True)
            if options.json:
                lines.append(options.json, record)
    for each in found.values():
        print(table.summary(each))


if __name__ == "__main__":
    main()
