"""Transformers of the `transformers` package with seeded random weights, exported by torch: needs the extra `torch`."""

import warnings
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch

TOKENS = 128
CACHED = 64
Exported = tuple[onnx.ModelProto, dict[str, NDArray]]


def bert(dynamo: bool, layers: int = 12) -> Exported:
    """BERT-base: the hidden states of `TOKENS` tokens, the last 28 masked."""
    from transformers import BertConfig, BertModel

    return _export("bert", lambda: BertModel(BertConfig(num_hidden_layers=layers)), _masked_text(), dynamo)


def distilbert(dynamo: bool, layers: int = 6) -> Exported:
    """DistilBERT, likewise."""
    from transformers import DistilBertConfig, DistilBertModel

    return _export("distilbert", lambda: DistilBertModel(DistilBertConfig(n_layers=layers)), _masked_text(), dynamo)


def vit(dynamo: bool, layers: int = 12) -> Exported:
    """ViT-base on one image."""
    from transformers import ViTConfig, ViTModel

    pixels = _rng("vit").standard_normal((1, 3, 224, 224)).astype(np.float32)
    return _export("vit", lambda: ViTModel(ViTConfig(num_hidden_layers=layers)), {"pixel_values": pixels}, dynamo)


def gpt2(dynamo: bool, layers: int = 12) -> Exported:
    """One step of GPT-2: a token, its position, and keys and values of fixed size, which come back updated."""
    import torch
    from transformers import GPT2Config, GPT2Model, StaticCache

    config = GPT2Config(n_layer=layers)

    class Step(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = GPT2Model(config)

        def forward(
            self, token: torch.Tensor, position: torch.Tensor, keys: torch.Tensor, values: torch.Tensor
        ) -> tuple[torch.Tensor, ...]:
            cache = StaticCache(config, max_cache_len=CACHED)
            for layer, key, value in zip(cache.layers, keys, values, strict=True):
                layer.keys, layer.values, layer.cumulative_length = key.clone(), value.clone(), position.clone()
                layer.dtype, layer.device, layer.is_initialized = key.dtype, key.device, True
            result = self.model(
                token, position_ids=position.reshape(1, 1), past_key_values=cache, use_cache=True, return_dict=False
            )
            return result[0], *(
                torch.stack([getattr(part, name) for part in cache.layers]) for name in ("keys", "values")
            )

    rng = _rng("gpt2")
    cached = (layers, 1, config.n_head, CACHED, config.n_embd // config.n_head)
    inputs = {
        "token": rng.integers(0, config.vocab_size, (1, 1)),
        "position": np.array(40),
        "keys": rng.standard_normal(cached).astype(np.float32),
        "values": rng.standard_normal(cached).astype(np.float32),
    }
    return _export("gpt2", Step, inputs, dynamo)


TRANSFORMERS: dict[str, Callable[..., Exported]] = {make.__name__: make for make in (bert, distilbert, gpt2, vit)}


def _rng(name: str) -> np.random.Generator:
    return np.random.default_rng([*name.encode()])


def _masked_text() -> dict[str, NDArray]:
    return {
        "input_ids": _rng("text").integers(0, 30_000, (1, TOKENS)),
        "attention_mask": (np.arange(TOKENS)[None] < TOKENS - 28).astype(np.int64),
    }


def _export(name: str, make: "Callable[[], torch.nn.Module]", inputs: dict[str, NDArray], dynamo: bool) -> Exported:
    import torch

    torch.manual_seed(0)

    class First(torch.nn.Module):
        """What has a fixed signature and gives a tuple, as both exporters want it."""

        def __init__(self) -> None:
            super().__init__()
            self.model = make()

        def forward(self, *arguments: torch.Tensor) -> Any:
            given = dict(zip(inputs, arguments, strict=True))
            found = self.model(**given)
            return found if isinstance(found, tuple) else found.last_hidden_state

    arguments = tuple(torch.from_numpy(np.asarray(array)) for array in inputs.values())
    with warnings.catch_warnings(), TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")  # both exporters warn of their own internals
        path = Path(folder, "model.onnx")
        torch.onnx.export(
            First().eval(), arguments, path, input_names=[*inputs], dynamo=dynamo, opset_version=18, verbose=False
        )
        exported = onnx.load(path)
    exported.graph.name = f"{name} ({'dynamo' if dynamo else 'TorchScript'})"
    return exported, inputs
