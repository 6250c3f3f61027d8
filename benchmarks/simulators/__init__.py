"""Simulators of neural accelerators beside ours; each of the others runs in a virtual environment of its own."""
