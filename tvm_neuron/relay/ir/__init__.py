"""Relay's expressions: types and nodes, how they are walked, copied and printed."""
