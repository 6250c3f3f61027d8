"""Instructions that the compiler could use, beside those that it does: `python -m benchmarks.instruction_choices`.

Reciprocals of N numbers in each partition by Vector's own instruction, by a division, and by Scalar's function; blocks
of [128, N] numbers that come from device memory transposed, by DMA alone, or in rows, through the Tensor engine and out
of PSUM. In nanoseconds of the engines that are at work, one after the other.
"""

from dataclasses import dataclass

from tvm_neuron.hw import CHIPS, Device, load_device
from tvm_neuron.isa import (
    Activation,
    Affine,
    DmaCopy,
    DramTile,
    Instruction,
    Reciprocal,
    TensorCopy,
    TensorScalar,
    Tile,
    Transpose,
)
from tvm_neuron.sim.clock import clock_hz, duration_ps

RECIPROCALS = (1, 128, 512, 2048)
ROWS = (128, 512)
_LANES = 128


@dataclass(frozen=True)
class Choice:
    """What is made of so many numbers, and how long each way keeps its engines, in ns."""

    chip: str
    what: str
    count: int
    ways_ns: dict[str, float]


def choices(device: Device) -> list[Choice]:
    """All of a chip."""
    found = [Choice(device.name, "1 / x", count, _reciprocals(device, count)) for count in RECIPROCALS]
    return [*found, *(Choice(device.name, "transpose", rows, _transposes(device, rows)) for rows in ROWS)]


def _reciprocals(device: Device, count: int) -> dict[str, float]:
    tile = _tile("sbuf", _LANES, count)
    return {
        "reciprocal": _ns(device, Reciprocal(tile, tile)),
        "division": _ns(device, TensorScalar(tile, tile, 1.0, 0.0, "divide", "bypass", 1)),
        "activation": _ns(device, Activation(tile, tile, 1.0, 0.0, "reciprocal")),
    }


def _transposes(device: Device, rows: int) -> dict[str, float]:
    """Of [rows, 128] in device memory to [128, rows] in SBUF."""
    target, block = _tile("sbuf", _LANES, rows), _tile("sbuf", _LANES, _LANES)
    turned = DramTile(0, "float32", Affine(), ((1, _LANES), (_LANES, rows)))
    part = DramTile(0, "float32", Affine(), ((_LANES, _LANES), (1, _LANES)))
    psum = _tile("psum", _LANES, _LANES)
    each = (DmaCopy(block, part, 0), Transpose(psum, block), TensorCopy(block, psum))
    blocks = rows // _LANES
    return {"DMA": _ns(device, DmaCopy(target, turned, 0)), "array": blocks * sum(_ns(device, one) for one in each)}


def _tile(space: str, lanes: int, count: int) -> Tile:
    return Tile(space, "float32", Affine(), lanes, Affine(), ((1, count),))


def _ns(device: Device, instruction: Instruction) -> float:
    cycles = instruction.cost(device).busy_cycles  # of a DMA ns
    return cycles if instruction.engine == "dma" else duration_ps(cycles, clock_hz(device, instruction.engine)) / 1000


def main() -> None:
    """Prints a line for each."""
    for chip in CHIPS:
        for choice in choices(load_device(chip)):
            ways = ", ".join(f"{way} {ns:,.0f}" for way, ns in choice.ways_ns.items())
            print(f"{chip:5} {choice.what:10} {choice.count:5} {ways} ns")


if __name__ == "__main__":
    main()
