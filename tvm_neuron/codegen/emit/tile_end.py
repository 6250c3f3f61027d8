"""TileEnd: the last step of one tile: from its root's value (in PSUM, say) through the arithmetic to its output."""

from collections.abc import Callable
from dataclasses import replace

from tvm_neuron.allocation.storage import OnChip, Spans, Storage
from tvm_neuron.codegen.emit.arithmetic import Arithmetic
from tvm_neuron.codegen.emit.builder import Loops, Scratch
from tvm_neuron.codegen.emit.emitter import Emitter
from tvm_neuron.codegen.emit.positions import follows_channel, is_vector, is_vector_of_chunks
from tvm_neuron.codegen.emit.squeeze import Squeeze
from tvm_neuron.codegen.emit.taken import Nowhere, bytes_taken
from tvm_neuron.codegen.emit.targets import Emits, Operand
from tvm_neuron.isa import Instruction, Tile
from tvm_neuron.isa.tile import Dims
from tvm_neuron.schedule.expr import Load, loads
from tvm_neuron.schedule.kernel import ROOT, Kernel
from tvm_neuron.schedule.linear import Linear, linear
from tvm_neuron.schedule.tiling import contiguous


class TileEnd:
    """The output tile, the operands, and the expression between them; `patterns` are those of whole tiles."""

    def __init__(self, emitter: Emitter, kernel: Kernel, spans: Spans) -> None:
        self.emitter, self.kernel, self.spans = emitter, kernel, spans
        out = emitter.storage(kernel.out).tile(kernel.out_maps, kernel.channel, kernel.free, spans)
        assert isinstance(out, Tile), f"{kernel.out} was not given a place in SBUF"
        self.out = out
        self.operands = {load: self._operand(load) for load in loads(kernel.expr) if load is not ROOT}
        self.patterns = [self.out, *(tile for tile in self.operands.values() if self._is_whole(tile))]

    def finish(
        self, shape_of: Squeeze, root: Tile | None, loops: Loops, through: Callable[[Emits], Emits] = lambda to: to
    ) -> None:
        """Emits the arithmetic `through` something; `root` is where the value of the kernel's root lies."""
        builder, (shape, resolve) = self.emitter.builder, self._operands(shape_of, root)
        scratch = Scratch(builder.scratch, bytes_taken(self.kernel.expr, shape, resolve, self.out.dtype), loops)
        Arithmetic(through(builder), scratch, shape, resolve).store(self.kernel.expr, shape_of(self.out))

    def instructions(self, shape_of: Squeeze, root: Tile | None = None) -> list[Instruction]:
        """What the arithmetic becomes, with temporaries nowhere."""
        nowhere, (shape, resolve) = Nowhere(), self._operands(shape_of, root)
        Arithmetic(nowhere, nowhere, shape, resolve).store(self.kernel.expr, shape_of(self.out))
        return nowhere.emitted

    def _operands(self, shape_of: Squeeze, root: Tile | None) -> tuple[tuple[int, Dims], Callable[[Load], Operand]]:
        """Of `Arithmetic`: the shape of a whole tile, and where loads lie."""
        counts = [self.spans[axis].size for axis in self.kernel.free]

        def resolve(load: Load) -> Operand:
            if load is ROOT:
                assert root is not None
                return root
            tile = self.operands[load]
            return shape_of(tile) if self._is_whole(tile) else replace(tile, dims=((1, 1),))

        return (self.spans[self.kernel.channel].size, shape_of.dims(contiguous(counts))), resolve

    def _is_whole(self, tile: Tile) -> bool:
        """Whether the tile moves along free axes, rather than having one value for each partition."""
        return len(tile.dims) == len(self.kernel.free) and any(step and count > 1 for step, count in tile.dims)

    def _operand(self, load: Load) -> Tile:
        kernel = self.kernel
        if load.tensor.value is not None and is_vector(load, kernel):
            channel = self.spans[kernel.channel]
            return self.emitter.builder.vector(load.tensor.value, channel.start, channel.size, channel.depth)
        maps = tuple(linear(index) for index in load.indices)
        storage: Storage
        if load.tensor.value is None:
            storage = self.emitter.storage(load.tensor)
        elif is_vector_of_chunks(load, kernel):
            first = maps[0].const
            at = self.emitter.builder.vectors.find(load.tensor.value, first)
            storage = OnChip("float32", 0, at, (first,), (0,), chunk_elems=1)
        else:
            storage = self.emitter.positions[load.tensor]
            if not follows_channel(load, kernel):
                maps = (Linear(0, {kernel.channel: 1}), *maps)
        tile = storage.tile(maps, kernel.channel, kernel.free, self.spans)
        assert isinstance(tile, Tile), f"{load.tensor} was not brought into SBUF"
        return tile
