"""A report as one HTML page that opens offline; see docs/reports.md."""
