"""timm: a network of each module of its list."""

from benchmarks.catalogue.entry import Entry, Network, first_that_runs, image, only_input
from benchmarks.catalogue.packages import timm
from benchmarks.catalogue.smallest import smallest

SIZES = (128, 160, 192, 224, 256, None)
"""Sides of images that are tried, before the one that a network was published with."""


def entries() -> list[Entry]:
    """The smallest networks; those named test_ are for timm's own tests."""
    names = [name for name in timm().list_models() if not name.startswith("test_")]
    from timm.models import _registry

    chosen = smallest(names, _registry._model_to_module.__getitem__, timm().create_model)
    return [Entry("timm", family, model) for family, model in chosen]


def make(model: str, batch: int) -> Network:
    """The network for the smallest images that it takes."""

    def sized(size: int | None) -> Network:
        try:
            module = timm().create_model(model, **({} if size is None else {"img_size": size}))
        except TypeError:  # it is for no size in particular
            module = timm().create_model(model)
        side = size or module.default_cfg["input_size"][-1]
        return only_input(module, image(model, batch, module.default_cfg["input_size"][0], side, side))

    return first_that_runs(sized, SIZES)
