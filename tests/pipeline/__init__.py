"""Subgraphs over several cores."""
