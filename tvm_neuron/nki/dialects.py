"""The dialects of the language, and all that differs between them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Dialect:
    """One family of versions.

    `returns`: instructions return tiles, else they write to their first argument. `hoists`: its compiler makes equal
    loads once where there is room (published counters of Beta 1 kernels show it; later ones do what the text says).
    `orders`: it has engines do other work of the kernel's than what comes next in the text and has to wait.
    `simplifies`: it makes one instruction of what is an expression of one tile (`simplify.py` has the evidence).
    `places_once`: it evaluates a loop's body once, so that a tensor has the same addresses in every iteration, also
    where the kernel counts them up. `stores_apart`: two iterations of an affine_range may not store to one place.
    `reduces_last`: what a reduction is over are the last axes; else it may skip some.
    `identity_on_chip`: `nl.shared_identity_matrix` gives a tile in SBUF.
    `launches_cores`: `kernel[n]` has an instance on each of n cores, else n instances one after another on one.
    """

    name: str
    package: str
    returns: bool
    hoists: bool
    orders: bool
    simplifies: bool
    places_once: bool
    stores_apart: bool
    reduces_last: bool
    identity_on_chip: bool
    launches_cores: bool


BETA1 = Dialect(
    "Beta 1", "neuronxcc.nki", returns=True, hoists=True, orders=True, simplifies=True, places_once=True,
    stores_apart=True, reduces_last=False, identity_on_chip=False, launches_cores=False,
)  # fmt: skip
BETA2 = Dialect(
    "Beta 2 and later", "nki", returns=False, hoists=False, orders=False, simplifies=False, places_once=False,
    stores_apart=False, reduces_last=True, identity_on_chip=True, launches_cores=True,
)  # fmt: skip
DIALECTS = (BETA1, BETA2)
