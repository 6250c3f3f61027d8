"""From a subgraph to a NEFF: kernels, schedules, memory plan, instruction streams."""
