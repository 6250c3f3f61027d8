"""Builds the nests that a compiler makes of convolutions, by hand: padded images in SBUF, channels on partitions."""

from dataclasses import dataclass, field

from tvm_neuron.isa import Activation, DmaCopy, DramTile, Instruction, Matmul, Memset, ScalarTensorTensor, Tile, affine
from tvm_neuron.program import DramTensor, Loop, Node, Origin, Program

BF16 = "bfloat16"


@dataclass
class Image:
    """[channels, height, width] at `at` in SBUF, `pad` zero rows and columns around it; 128 channels a tile."""

    channels: int
    height: int
    width: int
    pad: int
    at: int

    @property
    def row(self) -> int:
        return self.width + 2 * self.pad

    @property
    def tile_bytes(self) -> int:
        return (self.height + 2 * self.pad) * self.row * 2

    @property
    def tiles(self) -> int:
        return -(-self.channels // 128)

    @property
    def size_bytes(self) -> int:
        return self.tiles * self.tile_bytes

    @property
    def partitions(self) -> int:
        return min(128, self.channels)

    def whole(self) -> Tile:
        """All of it, padding included."""
        return Tile("sbuf", BF16, affine(0), self.partitions, affine(self.at), ((1, self.size_bytes // 2),))

    def inside(self, tile: int) -> Tile:
        """One tile without its padding."""
        at = self.at + tile * self.tile_bytes + (self.pad * self.row + self.pad) * 2
        partitions = min(128, self.channels - tile * 128)
        return Tile("sbuf", BF16, affine(0), partitions, affine(at), ((self.row, self.height), (1, self.width)))


@dataclass
class Builder:
    """Collects tensors, origins and nodes of a program."""

    columns: int = 64
    tensors: list[DramTensor] = field(default_factory=list)
    origins: list[Origin] = field(default_factory=list)
    body: list[Node] = field(default_factory=list)

    def tensor(self, name: str, kind: str, shape: tuple[int, ...], dtype: str = BF16) -> int:
        self.tensors.append(DramTensor(name, kind, shape, dtype))
        return len(self.tensors) - 1

    def load(self, image: Image, name: str) -> None:
        """Brings an input [channels, height, width] into a zeroed image."""
        self.origins.append(Origin(f"load {name}", "input"))
        tensor = self.tensor(name, "input", (image.channels, image.height, image.width))
        self.body.append(Memset(image.whole(), 0.0, origin=len(self.origins) - 1))
        self.body += [self._copy(image, t, tensor, is_load=True) for t in range(image.tiles)]

    def store(self, image: Image, name: str) -> None:
        """Writes an image to an output."""
        self.origins.append(Origin(f"store {name}", "output"))
        tensor = self.tensor(name, "output", (image.channels, image.height, image.width))
        self.body += [self._copy(image, t, tensor, is_load=False) for t in range(image.tiles)]

    def _copy(self, image: Image, t: int, tensor: int, is_load: bool) -> Instruction:
        inside = image.inside(t)
        pixels = image.height * image.width
        dims = ((pixels, inside.partitions), (image.width, image.height), (1, image.width))
        dram = DramTile(tensor, BF16, affine(t * 128 * pixels), dims)
        target, source = (inside, dram) if is_load else (dram, inside)
        return DmaCopy(target, source, 0, origin=len(self.origins) - 1)

    def conv(
        self,
        name: str,
        x: Image,
        y: Image,
        kernel: int,
        stride: int,
        weights_at: int,
        psum_at: int = 0,
        residual: Image | None = None,
        relu: bool = True,
    ) -> None:
        """y = relu(conv(x) + bias + residual); weights lie [K, k tile, ky, kx, M], the bias [partition, M tile]."""
        self.origins.append(Origin(name, "nn.conv2d"))
        origin = len(self.origins) - 1
        k, m = x.partitions, y.channels
        taps = kernel * kernel
        elems = x.tiles * taps * m
        weight = self.tensor(f"{name}.weight", "weight", (k, x.tiles, kernel, kernel, m))
        half = min(m, self.columns)
        halves = min(m, 128) // half
        bias_at = weights_at + (elems * 2 + 3) // 4 * 4
        bias = self.tensor(f"{name}.bias", "weight", (min(m, 128), y.tiles), "float32")
        bytes_at = lambda dtype, p, at, n: Tile("sbuf", dtype, affine(0), p, affine(at), ((1, n),))  # noqa: E731
        self.body += [
            DmaCopy(
                bytes_at(BF16, k, weights_at, elems),
                DramTile(weight, BF16, affine(0), ((elems, k), (1, elems))),
                1,
                origin=origin,
            ),
            DmaCopy(
                bytes_at("float32", min(m, 128), bias_at, y.tiles),
                DramTile(bias, "float32", affine(0), ((y.tiles, min(m, 128)), (1, y.tiles))),
                1,
                origin=origin,
            ),
        ]
        if y.pad:
            self.body.append(Memset(y.whole(), 0.0, origin=origin))
        rows = max(h for h in range(1, y.height + 1) if y.height % h == 0 and h * y.width <= 512)
        turns = y.height // rows
        # Depths: 0 M tile, 1 half of it, 2 rows, 3 k tile, 4 ky, 5 kx.
        part = affine(0, [(1, half)])
        bank = affine(psum_at, [(0, halves * turns * 2048), (1, turns * 2048), (2, 2048)], 0, 8192)
        psum = Tile("psum", "float32", part, half, bank, ((y.width, rows), (1, y.width)))
        stationary = Tile(
            "sbuf",
            BF16,
            affine(0),
            k,
            affine(weights_at, [(0, 256), (1, half * 2), (3, taps * m * 2), (4, kernel * m * 2), (5, m * 2)]),
            ((1, half),),
        )
        edge = x.pad - kernel // 2
        moving = Tile(
            "sbuf",
            BF16,
            affine(0),
            k,
            affine(
                x.at + (edge * x.row + edge) * 2,
                [(2, rows * stride * x.row * 2), (3, x.tile_bytes), (4, x.row * 2), (5, 2)],
            ),
            ((stride * x.row, rows), (stride, y.width)),
        )

        def into(image: Image) -> Tile:
            start = image.at + (image.pad * image.row + image.pad) * 2
            where = affine(start, [(0, image.tile_bytes), (2, rows * image.row * 2)])
            return Tile("sbuf", BF16, part, half, where, ((image.row, rows), (1, image.width)))

        shift = Tile("sbuf", "float32", part, half, affine(bias_at, [(0, 4)]), ((1, 1),))
        function = "relu" if relu else "copy"
        matmuls = Loop(
            x.tiles, (Loop(kernel, (Loop(kernel, (Matmul(stationary, moving, psum, (3, 4, 5), origin=origin),)),)),)
        )
        tail: list[Node] = [Activation(into(y), psum, 1.0, shift, function, origin=origin)]
        if residual:
            scratch = Tile(
                "psum", "float32", part, half, affine(psum_at + 8192 - psum_at % 8192, bank.terms, 0, 8192), psum.dims
            )
            tail = [
                ScalarTensorTensor(scratch, psum, into(residual), shift, "add", "add", origin=origin),
                Activation(into(y), scratch, 1.0, 0.0, function, origin=origin),
            ]
        self.body.append(Loop(y.tiles, (Loop(halves, (Loop(turns, (matmuls, *tail)),)),)))

    def program(self) -> Program:
        return Program(tuple(self.tensors), tuple(self.origins), tuple(self.body))
