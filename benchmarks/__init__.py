"""Every number that is published has its script here; `python -m benchmarks` runs them and prints one table."""
