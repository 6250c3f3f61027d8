"""One step of a decoder: a token, its position, and keys and values of fixed size, which come back updated."""

from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.catalogue.entry import Network, image, words

if TYPE_CHECKING:
    import torch

CACHED = 64
POSITION = 40


def decoder_step(name: str, decoder: "torch.nn.Module", batch: int) -> Network:
    """The step as a module of its own, and inputs in the middle of a text."""
    import torch
    from transformers import StaticCache

    config: Any = decoder.config

    class Step(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.decoder = decoder

        def forward(
            self, token: torch.Tensor, position: torch.Tensor, **kept: torch.Tensor
        ) -> tuple[torch.Tensor, ...]:
            parts = tuple(kept.values())
            cache = StaticCache(config, max_cache_len=CACHED)
            for layer, key, value in zip(cache.layers, parts[::2], parts[1::2], strict=True):
                layer.keys, layer.values, layer.cumulative_length = key.clone(), value.clone(), position.clone()
                layer.dtype, layer.device, layer.is_initialized = key.dtype, key.device, True
                layer.cumulative_length_int = POSITION  # of layers that see a window
            found = self.decoder(
                token, position_ids=position.expand(token.shape), past_key_values=cache, use_cache=True
            )
            return found[0], *(part for layer in cache.layers for part in (layer.keys, layer.values))

    cache = StaticCache(config, max_cache_len=CACHED)
    with torch.no_grad():
        decoder.eval()(torch.zeros((batch, 1), dtype=torch.int64), past_key_values=cache, use_cache=True)
    inputs = {"token": words(name, config.vocab_size, batch, 1), "position": np.array(POSITION)}
    for number, layer in enumerate(cache.layers):
        inputs[f"key{number}"] = image(f"{name}key{number}", *layer.keys.shape)
        inputs[f"value{number}"] = image(f"{name}value{number}", *layer.values.shape)
    return Step().eval(), inputs
