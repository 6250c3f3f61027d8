"""Tables of the run as a whole: Summary, Metadata, Warning."""

from collections import Counter
from collections.abc import Sequence
from math import prod

import numpy as np

from tvm_neuron.isa import Activation, Matmul
from tvm_neuron.isa.engines import BY_NAME, of_dma
from tvm_neuron.neff import Placement
from tvm_neuron.profile.parquet.chunk import ENGINES, Chunk
from tvm_neuron.profile.parquet.instructions import moved_bytes
from tvm_neuron.profile.parquet.transfers import kind_in_dram, transfer_bytes
from tvm_neuron.profile.recording import Ints, Recording
from tvm_neuron.profile.run import Run
from tvm_neuron.program.traffic import dram_traffic

_PS_PER_S = 1e12
_COUNTED = (
    "neuroncore_cycle_count", "model_flops", "hardware_flops", "dma_transfer_count", "dma_transfer_total_bytes",
    "dma_queue_count", "hbm_read_bytes", "hbm_write_bytes", "sbuf_read_bytes", "sbuf_write_bytes", "psum_read_bytes",
    "psum_write_bytes", "psum_read_sbuf_write_bytes", "psum_read_sbuf_write_count", "spill_save_bytes",
    "spill_reload_bytes", "input_queue_bytes", "output_queue_bytes", "weight_queue_bytes", "weight_size_bytes",
    "inputs_and_weights_size_bytes", "inputs_outputs_weights_size_bytes", "matmul_instruction_count",
    "activate_instruction_count", *(f"{engine.lower()}_engine_instruction_count" for engine in ENGINES.values()),
)  # fmt: skip


def summary(run: Run) -> Chunk:
    """One row: sums over all cores; percents are of the run's whole time on all of them."""
    found = sum((_counted(core.recording) for core in run.cores), Counter[str]())
    seconds, devices = run.end_ps / _PS_PER_S, [core.recording.neff.device for core in run.cores]
    peak_flops = 2 * sum(device.peak_macs_per_second for device in devices)
    peak_bytes = sum(device.dram_bytes_per_second for device in devices)
    moved = found["hbm_read_bytes"] + found["hbm_write_bytes"]
    times = {
        "dma_active_time": found["dma ps"],
        "total_active_time": found["active ps"],
        "activate_instruction_time": found["activation ps"],
        **{
            f"{engine.lower()}_engine_{what}_time": found[f"{queue} ps"]
            for queue, engine in ENGINES.items()
            for what in ("active", "instruction")
        },
    }
    values = {
        "total_time": seconds,
        "total_exec_time": seconds,
        "mm_arithmetic_intensity": _over(found["hardware_flops"], moved),
        "peak_flops_bandwidth_ratio": _over(peak_flops, peak_bytes),
        "dma_transfer_average_bytes": _over(found["dma_transfer_total_bytes"], found["dma_transfer_count"]),
        "mbu_estimated_percent": 100 * _over(moved, peak_bytes * seconds),
        "mfu_estimated_percent": 100 * _over(found["model_flops"], peak_flops * seconds),
        "hfu_estimated_percent": 100 * _over(found["hardware_flops"], peak_flops * seconds),
        **{name: ps / _PS_PER_S for name, ps in times.items()},
        **{
            f"{name}_percent": 100 * _over(ps, run.end_ps * len(devices))
            for name, ps in times.items()
            if name.endswith("_active_time")
        },
        **{name: found[name] for name in _COUNTED},
    }
    return {name: [value] for name, value in values.items()}


def _counted(one: Recording) -> Counter[str]:
    """All sums of one core; times, which end in " ps", too."""
    timing, neff, clock = one.timing, one.neff, one.clock
    found = Counter[str](
        {
            "neuroncore_cycle_count": timing.cycles,
            "model_flops": 2 * (timing.macs if neff.macs is None else neff.macs),
            "hardware_flops": 2 * timing.macs,
            "hbm_read_bytes": timing.dram_read_bytes,
            "hbm_write_bytes": timing.dram_written_bytes,
            "dma_queue_count": sum(map(of_dma, timing.busy_ps)),
            "active ps": _covered(clock.start, clock.end),
        }
    )
    sizes = Counter[str]()
    for tensor in neff.program.tensors:
        sizes[tensor.kind] += tensor.size_bytes
    found["weight_size_bytes"] = sizes["weight"]
    found["inputs_and_weights_size_bytes"] = sizes["weight"] + sizes["input"]
    found["inputs_outputs_weights_size_bytes"] = sizes["weight"] + sizes["input"] + sizes["output"]
    for queue, ps in timing.busy_ps.items():
        found[f"{queue.rstrip('01234567')} ps"] += ps
    durations = np.bincount(one.dynamic.number, clock.end - clock.start, len(one.dynamic.statics))
    for counts, each, ps in zip(one.dynamic.counts, one.dynamic.statics, durations.tolist(), strict=True):
        times = prod(counts)
        for name, size in moved_bytes(each).items():
            found[name] += times * size
        if each.engine == "dma":
            kind = kind_in_dram(one, each)
            found["dma_transfer_count"] += times
            found["dma_transfer_total_bytes"] += times * transfer_bytes(each)
            found[f"{kind}_queue_bytes"] += times * transfer_bytes(each)
        else:
            found[f"{ENGINES[each.engine].lower()}_engine_instruction_count"] += times
        found["matmul_instruction_count"] += times * isinstance(each, Matmul)
        found["activate_instruction_count"] += times * isinstance(each, Activation)
        found["activation ps"] += round(ps) * isinstance(each, Activation)
        found["psum_read_sbuf_write_count"] += times * (moved_bytes(each)["psum_read_sbuf_write_bytes"] > 0)
    for tensor_index, role, size in dram_traffic(neff.program):
        if neff.program.tensors[tensor_index].kind == "scratch":
            found["spill_reload_bytes" if role == "reads" else "spill_save_bytes"] += size
    return found


def _covered(start: Ints, end: Ints) -> int:
    """How long at least one of some intervals lasts."""
    order = np.argsort(start, kind="stable")
    until = np.maximum.accumulate(end[order])
    before = np.concatenate([[0], until[:-1]]) if len(until) else until
    return int(np.maximum(end[order] - np.maximum(start[order], before), 0).sum())


def _over(one: float, other: float) -> float:
    return one / other if other else 0.0


def metadata(run: Run) -> Chunk:
    """One row; of the device and compiler of the first program."""
    neff = run.cores[0].recording.neff
    device = neff.device
    return {
        "num_physical_cores": [len({core.core for core in run.cores})],
        "first_hw_timestamp": [0],
        "last_hw_timestamp": [run.end_ps // 1000],
        "num_dma_engines_per_neuroncore": [device.dma_engines],
        "hbm_ddr_bandwidth": [float(device.dram_bytes_per_second)],
        "tensor_engine_num_rows": [device.pe_rows],
        "tensor_engine_num_cols": [device.pe_columns],
        "vector_engine_num_channels": [device.partitions],
        "scalar_engine_num_channels": [device.partitions],
        **{f"{ENGINES[name].lower()}_engine_clock_freq": [BY_NAME[name].clock_hz(device) / 1e9] for name in ENGINES},
        **({"instance_type": [str(neff.options["instance"])]} if neff.options.get("instance") else {}),
        "compiler_version": [neff.compiler_version],
        "profile_name": [neff.name],
        "is_simulation": [True],
    }


def warning(placement: Sequence[Placement]) -> Chunk:
    """One row for each operator that runs on the CPU."""
    rows = [row for row in placement if row.where == "cpu"]
    return {
        "message": [f"{row.op} '{row.name}' runs on the CPU: {row.reason}" for row in rows],
        "category": ["placement"] * len(rows),
    }
