"""From a partitioned function to a NEFF."""
