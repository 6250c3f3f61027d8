"""cause: what another package's error says, short enough for a sentence of ours."""

_LONGEST = 300


def cause(error: Exception) -> str:
    """The kind and the first line of what it says, or of what caused it."""
    found = error.__cause__ or error
    lines = [line.strip() for line in str(found).splitlines() if line.strip()]
    return f"{type(found).__name__}: {lines[0] if lines else ''}"[:_LONGEST]
