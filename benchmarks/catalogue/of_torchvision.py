"""torchvision: a network of each module of its classifiers, segmenters, detectors, and of those for videos."""

from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from benchmarks.catalogue.entry import Entry, Network, first_that_runs, image, only_input
from benchmarks.catalogue.packages import torchvision
from benchmarks.catalogue.smallest import smallest

if TYPE_CHECKING:
    import torch

SIZES = (128, 160, 192, 224)
CLIPS = ((8, 112), (16, 128), (16, 224))
"""Frames and sides of videos that are tried."""
_DETECTORS = {
    "rcnn": {"min_size": 256, "max_size": 256, "rpn_post_nms_top_n_test": 50, "box_score_thresh": 0.0,
             "box_detections_per_img": 20},
    "retinanet": {"min_size": 256, "max_size": 256, "score_thresh": 0.0, "detections_per_img": 20},
    "fcos": {"min_size": 256, "max_size": 256, "score_thresh": 0.0, "detections_per_img": 20},
    "ssd": {"score_thresh": 0.0, "detections_per_img": 20},
}  # fmt: skip
"""Small images, and no least score: those of random weights are all low."""
_DETECTORS_SIDE = {"ssd300": 300, "ssdlite320": 320}


def entries() -> list[Entry]:
    """The smallest networks, but for quantised ones."""
    models = torchvision().models
    names = [name for name in models.list_models() if not name.startswith("quantized_")]
    chosen = smallest(names, lambda name: models.get_model_builder(name).__module__, _create)
    return [Entry("torchvision", family.removeprefix("torchvision.models."), model) for family, model in chosen]


def make(model: str, batch: int) -> Network:
    """The network for the smallest images or videos that it takes."""
    kind = torchvision().models.get_model_builder(model).__module__.split(".")[2]
    if kind == "detection":
        side = _DETECTORS_SIDE.get(model.split("_")[0], 256)
        return only_input(_detector(_create(model)), image(model, batch, 3, side, side))
    if kind == "optical_flow":
        return _create(model), {name: image(model + name, batch, 3, 128, 128) for name in ("image1", "image2")}
    if kind == "video":
        return first_that_runs(lambda clip: only_input(_create(model), _clip(model, batch, *clip)), CLIPS)
    return first_that_runs(lambda side: only_input(_sized(model, side), image(model, batch, 3, side, side)), SIZES)


def _clip(model: str, batch: int, frames: int, side: int) -> NDArray:
    return image(model, batch, 3, frames, side, side)


def _sized(model: str, side: int) -> "torch.nn.Module":
    """A network for this size, if it is for one in particular."""
    for word, value in (("image_size", side), ("input_size", (side, side))):
        try:
            return _create(model, **{word: value})
        except TypeError:
            continue
    return _create(model)


def _create(model: str, **words: Any) -> "torch.nn.Module":
    import torch

    torch.manual_seed(0)
    found = next((given for name, given in _DETECTORS.items() if name in model), {})
    is_headed = bool(found) or any(part in model for part in ("deeplab", "fcn_", "lraspp"))
    backbone = {"weights_backbone": None} if is_headed else {}
    return torchvision().models.get_model(model, weights=None, **backbone, **found, **words)


def _detector(module: "torch.nn.Module") -> "torch.nn.Module":
    """It wants a list of images."""
    import torch

    class Batched(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.module = module

        def forward(self, images: torch.Tensor) -> Any:
            return self.module([*images])

    return Batched()
