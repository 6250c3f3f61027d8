"""Tables of a run in Parquet, with the names, fields and units of the vendor's profiler; see docs/reports.md."""
