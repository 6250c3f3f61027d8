"""Graph to graph: what is known at compile time, moved, padded or laid out otherwise is settled here."""
