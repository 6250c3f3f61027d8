"""timm: a network of each module of its list; or any of its networks, each for images of a drawn size and number."""

import random

from benchmarks.catalogue.entry import Entry, Network, first_that_runs, image, only_input
from benchmarks.catalogue.packages import timm
from benchmarks.catalogue.smallest import smallest

SIZES = (128, 160, 192, 224, 256, None)
"""Sides of images that are tried, before the one that a network was published with."""
_DRAWN_SIZES = range(64, 513, 16)
_DRAWN_IMAGES = (1, 1, 2, 3, 4, 6, 8)
_MOST_WEIGHTS = 30_000_000  # of a network that is drawn: others take minutes


def entries() -> list[Entry]:
    """The smallest networks; those named test_ are for timm's own tests."""
    names = [name for name in timm().list_models() if not name.startswith("test_")]
    from timm.models import _registry

    chosen = smallest(names, _registry._model_to_module.__getitem__, timm().create_model)
    return [Entry("timm", family, model) for family, model in chosen]


def drawn(count: int, seed: int) -> list[Entry]:
    """So many of all its networks of few weights, named as `make` reads it; some take no images of their size."""
    import torch

    chosen = random.Random(seed)
    names = timm().list_models()
    found: list[Entry] = []
    while len(found) < count:
        name = chosen.choice(names)
        form = f"{name}@{chosen.choice(_DRAWN_IMAGES)}x{chosen.choice(_DRAWN_SIZES)}"
        with torch.device("meta"):
            weights = sum(each.numel() for each in timm().create_model(name).parameters())
        found += [Entry("timm", "drawn", form)] if weights <= _MOST_WEIGHTS else []
    return found


def form_of(model: str) -> tuple[str, int | None, int | None]:
    """Of `name@IMAGESxSIZE` all three; of a name alone it, for as many images and of such a size as suits."""
    name, _, form = model.partition("@")
    images, _, size = form.partition("x")
    return (name, int(images), int(size)) if form else (name, None, None)


def make(model: str, batch: int) -> Network:
    """The network for the smallest images that it takes, or for images as its name says (see `form_of`)."""
    name, images, side = form_of(model)

    def sized(size: int | None) -> Network:
        try:
            module = timm().create_model(name, **({} if size is None else {"img_size": size}))
        except TypeError:  # it is for no size in particular
            module = timm().create_model(name)
        extent = size or module.default_cfg["input_size"][-1]
        return only_input(module, image(model, images or batch, module.default_cfg["input_size"][0], extent, extent))

    return first_that_runs(sized, SIZES if side is None else (side,))
