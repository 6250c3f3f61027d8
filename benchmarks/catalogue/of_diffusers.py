"""diffusers: what draws images from noise, one step of it, and what makes pixels of its results."""

from typing import Any

import numpy as np

from benchmarks.catalogue.entry import Arrays, Entry, Network, image
from benchmarks.catalogue.packages import torchvision

MODELS = {
    "unet": "UNet2DConditionModel", "unet_unconditional": "UNet2DModel",
    "vae": "AutoencoderKL", "tiny_vae": "AutoencoderTiny",
    "dit": "DiTTransformer2DModel", "pixart": "PixArtTransformer2DModel", "sd3": "SD3Transformer2DModel",
}  # fmt: skip


def entries() -> list[Entry]:
    """Every one that is named here."""
    return [Entry("diffusers", model, model) for model in MODELS]


def make(model: str, batch: int) -> Network:
    """The network in a small configuration; of autoencoders, the decoder."""
    torchvision()
    import diffusers
    import torch

    torch.manual_seed(0)
    module = getattr(diffusers, MODELS[model])(**_sizes(model)).eval()
    if model.endswith("vae"):
        module.forward = module.decode
    return module, _inputs(model, batch)


def _sizes(model: str) -> dict[str, Any]:
    match model:
        case "unet":
            blocks = ("CrossAttnDownBlock2D", "DownBlock2D"), ("UpBlock2D", "CrossAttnUpBlock2D")
            return _blocks(blocks, 16) | {"cross_attention_dim": 128, "attention_head_dim": 8}
        case "unet_unconditional":
            return _blocks((("DownBlock2D", "AttnDownBlock2D"), ("AttnUpBlock2D", "UpBlock2D")), 32)
        case "vae":
            types = ("DownEncoderBlock2D",) * 2, ("UpDecoderBlock2D",) * 2
            return _blocks(types, 32) | {"latent_channels": 4}
        case "tiny_vae":
            return {}
    attention = {"num_attention_heads": 4, "attention_head_dim": 64, "num_layers": 2, "sample_size": 16}
    match model:
        case "dit":
            return attention
        case "pixart":
            return attention | {"cross_attention_dim": 256, "caption_channels": 128}
    text = {"joint_attention_dim": 128, "pooled_projection_dim": 128}
    return attention | text | {"caption_projection_dim": 256, "pos_embed_max_size": 16}


def _blocks(types: tuple[tuple[str, ...], tuple[str, ...]], size: int) -> dict[str, Any]:
    """Two levels of one layer each."""
    return {
        "sample_size": size, "block_out_channels": (64, 128), "layers_per_block": 1, "norm_num_groups": 16,
        "down_block_types": types[0], "up_block_types": types[1],
    }  # fmt: skip


def _inputs(model: str, batch: int) -> Arrays:
    time = np.full(batch, 500, np.int64)
    text = image(f"{model} text", batch, 16, 128)
    match model:
        case "unet":
            return {"sample": image(model, batch, 4, 16, 16), "timestep": time, "encoder_hidden_states": text}
        case "unet_unconditional":
            return {"sample": image(model, batch, 3, 32, 32), "timestep": time}
        case "vae":
            return {"z": image(model, batch, 4, 16, 16)}
        case "tiny_vae":
            return {"x": image(model, batch, 4, 16, 16)}
    latent = {"hidden_states": image(model, batch, 16 if model == "sd3" else 4, 16, 16), "timestep": time}
    match model:
        case "dit":
            return latent | {"class_labels": np.arange(batch)}
        case "pixart":
            return latent | {"encoder_hidden_states": text}
    return latent | {"encoder_hidden_states": text, "pooled_projections": image(f"{model} pooled", batch, 128)}
