"""Device: what the compiler and the hardware model know of one NeuronCore, with the unit in every name."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from tvm_neuron.errors import DeviceError

_LACKS = (
    "fp32_matmul_passes",
    "fp8_matmul_rows",
    "dma_indirect_ns",
    "dma_transpose_percent",
    "dma_far_ns",
    "gpsimd_clock_hz",
    "instruction_overhead_cycles",
)  # as 0: it has none
LARGEST = 2**48  # of any quantity: products of two of them still are exact enough as floats


@dataclass(frozen=True, kw_only=True)
class Device:
    """One NeuronCore. All quantities are per core; `sources` says where each number is from.

    Raises:
        DeviceError: a number is not positive or too large, or `sources` lacks one.
    """

    name: str
    core_generation: int  # of NeuronCores
    pe_rows: int
    pe_columns: int
    pe_clock_hz: int
    act_clock_hz: int
    pool_clock_hz: int
    gpsimd_clock_hz: int  # 0: it has no such engine
    fp32_matmul_passes: int  # 0: the array takes no fp32
    fp32_transpose_passes: int  # of a transposition through the array
    fp8_matmul_rows: int  # of 8-bit floats that a row of the array multiplies at a time; 0: it takes none
    stationary_columns_per_cycle: int  # of a tile that is loaded into the array; seen where nothing hides that
    moving_max_elems: int
    matmul_min_cycles: int
    elementwise_min_cycles: int
    reduce_extra_cycles: int
    reciprocal_cycles: int  # of POOL, for an element
    narrow_rate: int  # 16-bit elements of SBUF side by side that a lane of POOL copies or scales in a cycle
    instruction_latency_cycles: int  # until the result can be read
    instruction_overhead_cycles: int  # of ACT and POOL, for each instruction besides its elements
    gpsimd_start_cycles: int  # before an instruction there begins
    strided_penalty_bytes: int  # a free-axis step of this many bytes or more halves the bandwidth
    partitions: int
    sbuf_bytes_per_partition: int
    psum_bytes_per_partition: int
    psum_banks: int
    psum_accesses: int  # of ACT's and POOL's to PSUM at a time
    sbuf_accesses: int  # of POOL's and GpSimd's to SBUF at a time
    dram_bytes: int
    dram_bytes_per_second: int
    dma_engines: int
    dma_queues: int
    dma_descriptor_ns: int
    dma_descriptor_max_bytes: int
    dma_far_bytes: int  # of device memory between two descriptors from which the second takes longer
    dma_open_places: int  # so many such places, in turn, take no longer
    dma_far_ns: int  # that long at least; 0: no longer than others
    dma_start_ns: int
    dma_transpose_percent: int  # of the rate, for what is contiguous in DRAM along another axis; 0: element by element
    dma_indirect_ns: int  # more until a transfer with computed addresses starts; 0: the DMA has none
    semaphores: int
    cores_per_chip: int
    host_bytes_per_second: int  # of the link between host and device, one way
    host_call_ns: int  # what one more run of the device costs, before and after its transfers
    host_request_ns: int  # what a request takes on the host besides: framework, runtime, driver
    host_operations_per_second: int  # of a CPU part: scalar operations
    sources: Mapping[str, str] = field(repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in self.numbers():
            value = getattr(self, name)
            if name not in self.sources:
                raise DeviceError(f"device '{self.name}': {name} has no source; say where the number is from")
            smallest = 0 if name in _LACKS else 1
            if type(value) is not int or not smallest <= value <= LARGEST:
                raise DeviceError(
                    f"device '{self.name}': {name} is {value!r}; it must be a whole number from {smallest} to {LARGEST}"
                )

    @classmethod
    def numbers(cls) -> tuple[str, ...]:
        """Names of all quantities, in the order of declaration."""
        return tuple(f.name for f in fields(cls) if f.name not in ("name", "sources"))

    @property
    def psum_bank_bytes(self) -> int:
        """Bytes of one PSUM bank in each partition."""
        return self.psum_bytes_per_partition // self.psum_banks

    @property
    def sbuf_bytes(self) -> int:
        """Bytes of the whole SBUF."""
        return self.sbuf_bytes_per_partition * self.partitions

    @property
    def peak_macs_per_second(self) -> int:
        """bf16 multiply-accumulates per second of the PE array."""
        return self.pe_rows * self.pe_columns * self.pe_clock_hz
