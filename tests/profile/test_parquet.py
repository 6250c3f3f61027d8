"""Tables: declared fields only, numbers that agree with the clock and with each other across tables."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.neff.samples import add_relu
from tests.onnx_models import mixed_model
from tvm_neuron import relay, runtime
from tvm_neuron.cli.main import main
from tvm_neuron.neff import Pipeline, Placement, save
from tvm_neuron.profile import Run, run_of
from tvm_neuron.sim import time_program

TABLES = {
    "DmaPacket", "DmaPacketAggregated", "DmaQueuesInfo", "DmaUsage", "Flow", "HbmUsage", "Instruction", "Metadata",
    "OpcodeSummary", "PsumUsage", "SbufAllocation", "SbufUsage", "SchemaFields", "SemaphoreUpdate", "StackFrame",
    "Summary", "TensorInfo", "Warning",
}  # fmt: skip


@pytest.fixture(scope="module")
def made() -> tuple[Run, dict[str, dict[str, Any]]]:
    """Of two programs with a CPU part between them: the run, and the columns of all tables."""
    pytest.importorskip("pyarrow")  # in an environment older than the extra
    from tvm_neuron.profile.parquet.write import make_tables

    mod, params = relay.frontend.from_onnx(mixed_model())
    library = relay.build(mod, target="neuron", params=params)
    run = run_of(runtime.parts(library))
    return run, {name: t.to_pydict() for name, t in make_tables(run, runtime.report(library).placement).items()}


def test_every_declared_field_is_there_with_its_unit(made: tuple[Run, dict]) -> None:
    from tvm_neuron.profile.parquet.write import columns, make_tables

    declared = {(row["table"], row["field"]) for row in columns()}
    assert {(name, field) for name, rows in made[1].items() for field in rows} == declared
    assert set(made[1]) == TABLES
    schema = make_tables(made[0], ())["HbmUsage"].schema
    assert schema.field("current_throughput").metadata[b"unit"] == b"bytes_per_second"
    assert str(schema.field("timestamp").type) == "int64"
    fields = made[1]["SchemaFields"]
    assert set(zip(fields["table_name"], fields["field_name"], strict=True)) == declared


def test_sums_are_those_of_the_clock(made: tuple[Run, dict]) -> None:
    run, tables = made
    timings = [time_program(core.recording.neff.program, core.recording.neff.device) for core in run.cores]
    assert len(timings) == 2
    work, moves, (whole,) = tables["Instruction"], tables["DmaPacketAggregated"], rows(tables["Summary"])
    assert len(work["id"]) + len(moves["id"]) == sum(timing.instructions for timing in timings)
    assert len({*work["id"], *moves["id"]}) == len(work["id"]) + len(moves["id"])
    assert sum(work["raw_flops"]) == whole["hardware_flops"] == 2 * sum(timing.macs for timing in timings)
    in_dram = [size for size, kind in zip(moves["transfer_bytes"], moves["queue_type"], strict=True) if kind]
    assert sum(in_dram) == pytest.approx(sum(timing.dram_bytes for timing in timings))  # no transfer casts here
    assert whole["hbm_read_bytes"] + whole["hbm_write_bytes"] == sum(timing.dram_bytes for timing in timings)
    for engine, queue in (("Tensor", "pe"), ("Scalar", "act"), ("Vector", "pool")):
        busy_ns = sum(timing.busy_ps.get(queue, 0) for timing in timings) / 1000
        mine = [ns for ns, at in zip(work["duration_ns"], work["engine"], strict=True) if at == engine]
        assert sum(mine) == pytest.approx(busy_ns, abs=len(mine))  # each begins and ends at a whole nanosecond
        assert whole[f"{engine.lower()}_engine_active_time"] == pytest.approx(busy_ns / 1e9)
        assert whole[f"{engine.lower()}_engine_instruction_count"] == len(mine)
    assert whole["total_time"] == run.end_ps / 1e12
    assert sum(tables["OpcodeSummary"]["instruction_count"]) == len(work["id"]) + len(moves["id"])
    assert len(tables["SemaphoreUpdate"]["id"]) == sum(timing.instructions for timing in timings)


def test_tables_refer_to_each_other(made: tuple[Run, dict]) -> None:
    tables = made[1]
    ids = {name: set(tables[name]["id"]) for name in ("Instruction", "DmaPacketAggregated")}
    for row in rows(tables["Flow"]):
        assert row["in_id"] in ids[row["in_table"]]
        assert row["out_id"] in ids[row["out_table"]]
        assert row["gap_time"] >= 0
    assert set(tables["DmaPacket"]["packet_aggregation_id"]) == ids["DmaPacketAggregated"]
    assert set(tables["DmaPacketAggregated"]["variable"]) <= {*tables["TensorInfo"]["variable_name"], ""}
    weights = [row for row in rows(tables["TensorInfo"]) if row["type"] == "weight"]
    assert weights
    for row in weights:
        assert row["load_to_sbuf_repeat_factor"] == row["load_to_sbuf_total_size_bytes"] / row["size"] >= 1
    assert any("TopK" in message for message in tables["Warning"]["message"])


def test_memories(made: tuple[Run, dict]) -> None:
    run, tables = made
    for name in ("SbufUsage", "PsumUsage"):
        for row in rows(tables[name]):
            parts = [value for field, value in row.items() if field.endswith("_util_percent") and "avg" not in field]
            assert len(parts) == {"SbufUsage": 4, "PsumUsage": 8}[name]
            assert row["avg_util_percent"] == pytest.approx(np.mean(parts), abs=1e-3)
            assert 0 <= min(parts) <= max(parts) <= 100
    allocated = tables["SbufAllocation"]
    device = run.cores[0].recording.neff.device
    assert 0 <= min(allocated["start_address"]) < max(allocated["end_address"]) <= device.sbuf_bytes_per_partition
    assert all(begin <= end for begin, end in zip(allocated["start_ts"], allocated["end_ts"], strict=True))
    assert "w" in "".join(allocated["tensor_name"])


def rows(table: dict[str, list]) -> list[dict[str, Any]]:
    return [dict(zip(table, values, strict=True)) for values in zip(*table.values(), strict=True)]


def test_written_by_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    save(add_relu(), tmp_path / "r.neff")
    assert main(["report", str(tmp_path / "r.neff"), "--tables", str(tmp_path / "tables")]) == 0
    assert {path.stem for path in (tmp_path / "tables").iterdir()} == TABLES
    work = parquet.read_table(tmp_path / "tables" / "Instruction.parquet").to_pydict()
    assert work["opcode"] == ["tensor_tensor", "tensor_tensor", "activation"]
    assert work["layer"] == ["sum/add", "sum/add", "sum/relu"]
    assert work["sbuf_read_bytes"] == [2 * 64, 2 * 64, 128]
    (tmp_path / "file").write_text("")
    assert main(["report", str(tmp_path / "r.neff"), "--tables", str(tmp_path / "file")]) == 1
    assert f"the tables can't be written to '{tmp_path / 'file'}': File exists" in capsys.readouterr().err


def test_without_the_extra(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    save(add_relu(), tmp_path / "r.neff")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "tvm_neuron.profile.parquet.write", raising=False)
    assert main(["report", str(tmp_path / "r.neff"), "--tables", str(tmp_path / "tables")]) == 1
    assert "--tables needs the package pyarrow: pip install 'tvm-neuron[tables]'" in capsys.readouterr().err
    assert not (tmp_path / "tables").exists()


def test_nothing_on_the_neuroncore() -> None:
    pytest.importorskip("pyarrow")
    from tvm_neuron.profile.parquet.write import make_tables

    tables = make_tables(run_of([]), [Placement("nms", "NonMaxSuppression", "cpu", "its size depends on the data")])
    assert {name for name, table in tables.items() if table.num_rows} == {"SchemaFields", "Warning"}


def test_windows_add_up() -> None:
    pytest.importorskip("pyarrow")
    from tvm_neuron.profile.parquet.write import make_tables

    tables = make_tables(run_of([Pipeline.of(add_relu())]), ())
    for name in ("HbmUsage", "DmaUsage"):
        assert tables[name]["total_transfer_bytes"].to_pylist()[-1] == 3 * 128
