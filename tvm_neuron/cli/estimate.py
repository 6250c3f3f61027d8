"""seconds_left: how long a compile may still take, from the stage that begins and the time so far.

The shares were measured: the means of ResNet-50 and BERT-base, whose stages take much the same part of the whole.
"""

import re

_BEGINS = {
    "import": 0.0, "normalise": 0.12, "partition": 0.14, "compile neuron": 0.33, "compile the CPU parts": 0.86,
    "link": 0.88, "write": 0.89,
}  # fmt: skip
"""What part of the whole is done when a stage begins, by the first words of its name."""
_INSIDE = {"schedule": 0.25, "place tensors": 0.36, "emit": 0.40, "synchronise": 0.55, "check": 0.75}
"""The same inside of one subgraph."""
_SUBGRAPH = re.compile(r"compile neuron_\d+, (\d+) of (\d+)")


class Estimate:
    """Follows the stages of one compile."""

    def __init__(self) -> None:
        self._number, self._count = 1, 1  # of the subgraph that is being compiled

    def seconds_left(self, stage: str, seconds: float) -> float | None:
        """How long from the beginning of `stage`, `seconds` after the start; None if nothing is known of it."""
        done = self._done(stage)
        return seconds * (1 - done) / done if done else None

    def _done(self, stage: str) -> float | None:
        found = _SUBGRAPH.fullmatch(stage)
        inside = 0.0 if found else _INSIDE.get(stage.rpartition(": ")[2])
        if found:
            self._number, self._count = int(found[1]), int(found[2])
        if inside is None:
            return next((share for words, share in _BEGINS.items() if stage.startswith(words)), None)
        begin, end = _BEGINS["compile neuron"], _BEGINS["compile the CPU parts"]
        return begin + (end - begin) * (self._number - 1 + inside) / self._count
