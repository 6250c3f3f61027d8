"""Scanner: recurrences along a free axis, each row of each partition by one instruction."""

from collections.abc import Mapping
from dataclasses import replace

from tvm_neuron.allocation.storage import OnChip, Span
from tvm_neuron.codegen.emit.builder import Scratch
from tvm_neuron.codegen.emit.emitter import Emitter
from tvm_neuron.hw import Device
from tvm_neuron.isa import Affine, Memset, TensorTensorScan, Tile
from tvm_neuron.schedule.expr import Axis, Load, Num
from tvm_neuron.schedule.graph import linear_indices
from tvm_neuron.schedule.kernel import Kernel, Scan
from tvm_neuron.schedule.tiling import PARTITIONS


class Scanner:
    """The scans of a kernel; a factor that is a number lies in each partition once, and is read at every step."""

    def __init__(self, emitter: Emitter, kernel: Kernel, root: Scan) -> None:
        self.emitter, self.kernel, self.root = emitter, kernel, root
        self.number: Tile | None = None
        if isinstance(root.factor, Num):
            slot = Scratch(emitter.builder.reduced, 4, ())
            self.number = slot.tile(min(kernel.channel.extent, PARTITIONS), ((1, 1),))
            emitter.builder.emit(Memset(result=self.number, value=float(root.factor.value)))

    def emit(self, spans: Mapping[Axis, Span], out: Tile) -> None:
        """One row: all of the axis along which the kernel scans, one place of the others."""
        root, free = self.root, self.kernel.free
        along = out.dims[free.index(root.along)]
        initial: float | Tile
        if isinstance(root.initial, Load):
            initial = replace(self._operand(root.initial, spans), dims=((1, 1),))
        else:
            initial = float(root.initial.value)
        if isinstance(root.factor, Load):
            factor = self._operand(root.factor, spans)
        else:
            assert self.number is not None
            factor = replace(self.number, partitions=out.partitions, dims=((0, along[1]),))
        self.emitter.builder.emit(
            TensorTensorScan(
                result=replace(out, dims=(along,)), left=factor, right=self._operand(root.load, spans),
                initial=initial, op0="multiply", op1="add", reverse=0,
            )
        )  # fmt: skip

    def _operand(self, load: Load, spans: Mapping[Axis, Span]) -> Tile:
        """What is read along the axis that is scanned, the same all along where it has no such axis."""
        (counted,), maps = self.root.axes, linear_indices(load.indices) or ()
        storage = self.emitter.storage(load.tensor)
        assert isinstance(storage, OnChip), f"{load.tensor} was not brought into SBUF"
        axes = (*self.kernel.free, counted)
        tile = storage.tile(maps, self.kernel.channel, axes, {**spans, counted: Span(0, counted.extent)})
        return replace(tile, dims=tile.dims[-1:])


def scan_cycles(root: Scan, device: Device) -> int:
    """For how long POOL works on a row."""
    (counted,) = root.axes

    def row(load: Load | None) -> Tile:
        steps = [part.terms.get(counted, 0) for part in linear_indices(load.indices) or ()] if load else [1]
        inner = next((n for n, step in enumerate(reversed(steps)) if step), 0)
        apart = device.strided_penalty_bytes if inner else 1  # of another dimension than the last: elements lie apart
        return Tile("sbuf", "float32", Affine(), 1, Affine(), ((apart, counted.extent),))

    factor = row(root.factor) if isinstance(root.factor, Load) else row(None)
    scan = TensorTensorScan(row(None), factor, row(root.load), 0.0, "multiply", "add", 0)
    return scan.cost(device).busy_cycles
