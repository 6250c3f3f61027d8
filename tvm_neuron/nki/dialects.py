"""The dialects of the language, and all that differs between them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Dialect:
    """One family of versions.

    `returns`: instructions return tiles, else they write to their first argument. `hoists`: its compiler makes equal
    loads once where there is room (published counters of Beta 1 kernels show it; later ones do what the text says).
    `orders`: it has engines do other work of the kernel's than what comes next in the text and has to wait.
    `places_once`: it evaluates a loop's body once, so that a tensor has the same addresses in every iteration, also
    where the kernel counts them up. `identity_on_chip`: `nl.shared_identity_matrix` gives a tile in SBUF.
    """

    name: str
    package: str
    returns: bool
    hoists: bool
    orders: bool
    places_once: bool
    identity_on_chip: bool


BETA1 = Dialect(
    "Beta 1", "neuronxcc.nki", returns=True, hoists=True, orders=True, places_once=True, identity_on_chip=False
)
BETA2 = Dialect(
    "Beta 2 and later", "nki", returns=False, hoists=False, orders=False, places_once=False, identity_on_chip=True
)
DIALECTS = (BETA1, BETA2)
