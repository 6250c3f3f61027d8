"""write_tables: a run as a folder of Parquet files, one for each table."""

import csv
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from tvm_neuron.errors import NeffError
from tvm_neuron.neff import Placement
from tvm_neuron.profile.parquet import instructions, memory, transfers
from tvm_neuron.profile.parquet.chunk import Chunk
from tvm_neuron.profile.parquet.summary import metadata, summary, warning
from tvm_neuron.profile.run import CoreRun, Run

BY_CORE: dict[str, Callable[[CoreRun, int], Chunk]] = {
    "Instruction": instructions.instruction,
    "OpcodeSummary": instructions.opcode_summary,
    "SemaphoreUpdate": instructions.semaphore_update,
    "Flow": instructions.flow,
    "DmaPacket": transfers.dma_packet,
    "DmaPacketAggregated": transfers.dma_packet_aggregated,
    "DmaQueuesInfo": transfers.dma_queues_info,
    "TensorInfo": transfers.tensor_info,
    "SbufUsage": memory.sbuf_usage,
    "SbufAllocation": memory.sbuf_allocation,
    "PsumUsage": memory.psum_usage,
    "HbmUsage": memory.hbm_usage,
    "DmaUsage": memory.dma_usage,
}
_TYPES = {
    "int64": pa.int64(), "int32": pa.int32(), "float": pa.float64(), "string": pa.string(), "boolean": pa.bool_(),
}  # fmt: skip


def columns() -> list[dict[str, str]]:
    """Of each column of each table: "table", "field", "type", "unit", "required" (by the vendor), "description"."""
    text = (files("tvm_neuron.profile.parquet") / "columns.csv").read_text("utf-8")
    return list(csv.DictReader(text.splitlines()))


def make_tables(run: Run, placement: Sequence[Placement]) -> dict[str, pa.Table]:
    """All tables by name; a column that no core has is left out."""
    chunks: dict[str, list[Chunk]] = {name: [] for name in dict.fromkeys(row["table"] for row in columns())}
    first_id = 0
    for core in run.cores:
        for name, make in BY_CORE.items():
            chunks[name].append(make(core, first_id))
        first_id += len(core.recording.dynamic)
    if run.cores:
        chunks["Summary"].append(summary(run))
        chunks["Metadata"].append(metadata(run))
    chunks["Warning"].append(warning(placement))
    chunks["SchemaFields"].append(_schema_fields())
    return {name: pa.concat_tables([_table(name, {}), *(_table(name, one) for one in found)], promote_options="default")
            for name, found in chunks.items()}  # fmt: skip


def write_tables(run: Run, placement: Sequence[Placement], folder: Path) -> None:
    """Writes `folder`/NAME.parquet for each table.

    Raises:
        NeffError: they can't be written there.
    """
    tables = make_tables(run, placement)
    try:
        folder.mkdir(exist_ok=True)
        for name, table in tables.items():
            pyarrow.parquet.write_table(table, folder / f"{name}.parquet")
    except OSError as error:
        raise NeffError(f"the tables can't be written to '{folder}': {error.strerror or error}") from error


def _table(name: str, chunk: Chunk) -> pa.Table:
    """One chunk with the columns and types of its table; what it says of a column beyond these is a defect."""
    declared = [row for row in columns() if row["table"] == name and (not chunk or row["field"] in chunk)]
    fields = [
        pa.field(
            row["field"], _TYPES[row["type"]], metadata={"unit": row["unit"], "description": row["description"]}
        )
        for row in declared
    ]
    if chunk and len(fields) != len(chunk):
        raise AssertionError(f"{name}: {sorted(set(chunk) - {row['field'] for row in declared})} are in no table")
    arrays = [pa.array(chunk.get(field.name, []), field.type) for field in fields]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _schema_fields() -> Chunk:
    rows = columns()
    docs = {name: (make.__doc__ or "").strip() for name, make in BY_CORE.items()}
    return {
        "table_name": [row["table"] for row in rows],
        "table_description": [docs.get(row["table"], "") for row in rows],
        "field_name": [row["field"] for row in rows],
        "field_description": [row["description"] for row in rows],
        "field_type": [row["type"] for row in rows],
        "field_required": [row["required"] == "yes" for row in rows],
        "field_unit": [row["unit"] for row in rows],
    }
