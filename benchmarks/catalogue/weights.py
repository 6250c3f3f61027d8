"""Random weights for networks that begin with constants, so that every part of them has an effect on the outputs."""

import math
from typing import TYPE_CHECKING

from benchmarks.catalogue.entry import Arrays

if TYPE_CHECKING:
    import torch

_IMAGES = 8  # of images that end as a single pixel, two values of each channel say little of what others will be


def randomise(module: "torch.nn.Module", inputs: Arrays) -> None:
    """Draws anew what is constant, then lets batch norms learn what they normalise; in place, seeded by the caller.

    Constructors switch whole branches off by zeros (the last norm of a block, layer scales, position tables), and the
    mean 0 and variance 1 of an untrained batch norm let the numbers of a deep network grow without end.
    """
    import torch

    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if parameter.is_floating_point() and _is_constant(parameter):
                _draw(name, parameter)
        _learn_norms(module, inputs)


def _is_constant(parameter: "torch.Tensor") -> bool:
    """Whether all elements are the same; of a single one, whether it is zero."""
    return bool((parameter == parameter.flatten()[0]).all()) and (parameter.numel() > 1 or not parameter.any())


def _draw(name: str, parameter: "torch.Tensor") -> None:
    sides = [size for size in parameter.shape if size > 1]
    if name.endswith("bias"):
        parameter.normal_(std=0.1)
    elif len(sides) > 1:
        parameter.normal_(std=1 / math.sqrt(parameter.numel() / sides[0]))
    else:
        parameter.uniform_(0.5, 1.5)


def _learn_norms(module: "torch.nn.Module", inputs: Arrays) -> None:
    import torch

    norms = [part for part in module.modules() if isinstance(part, torch.nn.modules.batchnorm._BatchNorm)]
    norms = [norm for norm in norms if norm.track_running_stats]
    if not norms:
        return
    module.eval()  # detectors take no images without targets in training
    for norm in norms:
        norm.train()
        norm.momentum = None  # the mean over all passes, of which there is one
    given = {name: torch.from_numpy(array) for name, array in inputs.items()}
    several = {name: torch.cat([x, *(torch.randn_like(x) for _ in range(_IMAGES - 1))]) for name, x in given.items()}
    module(**several)
    for norm in norms:
        norm.eval()
