"""transformers: architectures for texts, images and speech in small configurations; decoders also by one step."""

import inspect
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.catalogue.decoder_step import decoder_step
from benchmarks.catalogue.entry import Arrays, Entry, Network, image, words
from benchmarks.catalogue.packages import torchvision

if TYPE_CHECKING:
    import torch

TOKENS = 64
PADDED = 16  # of them, at the end
FEW_TOKENS = 8
SIDE = 128
SAMPLES = 8000
FRAMES = 128
SMALL: dict[str, Any] = {
    **dict.fromkeys(("hidden_size", "d_model", "n_embd", "dim", "embedding_size", "hidden_dim_of_decoder"), 256),
    **dict.fromkeys(("num_hidden_layers", "num_layers", "n_layer", "n_layers", "encoder_layers", "decoder_layers"), 2),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_heads"), 4),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 4),
    **dict.fromkeys(("intermediate_size", "encoder_ffn_dim", "decoder_ffn_dim", "ffn_dim", "hidden_dim", "d_ff"), 512),
    "num_decoder_layers": 2, "num_key_value_heads": 2, "head_dim": 64, "d_kv": 64, "vocab_size": 1000,
    "word_embed_proj_dim": 256, "n_routed_experts": 4, "num_experts": 4, "num_local_experts": 4,
    "num_experts_per_tok": 2, "moe_intermediate_size": 128, "shared_expert_intermediate_size": 128,
    "pad_token_id": 0, "max_position_embeddings": 512, "max_source_positions": 200, "max_length": 128,
}  # fmt: skip
"""What a configuration has of these is set to them."""
ENCODERS = (
    "albert", "bert", "big_bird", "clip_text_model", "convbert", "deberta", "deberta-v2", "distilbert", "electra",
    "fnet", "ibert", "layoutlm", "longformer", "mobilebert", "modernbert", "mpnet", "nystromformer",
    "roberta", "roformer", "squeezebert", "xlnet",
)  # fmt: skip
DECODERS = (
    "bloom", "codegen", "cohere", "falcon", "gemma", "gemma2", "gemma3_text", "glm", "gpt2", "gpt_neox",
    "gpt_oss", "gptj", "granite", "llama", "mistral", "mixtral", "mpt", "olmo", "olmo2", "opt", "phi",
    "phi3", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "smollm3", "stablelm", "starcoder2", "deepseek_v3",
)  # fmt: skip
"""Their whole text at once, and one token with a cache of fixed size."""
RECURRENT = ("mamba", "mamba2", "falcon_mamba", "rwkv")
"""One token after the other, so few of them."""
TRANSLATORS = ("bart", "blenderbot", "led", "longt5", "marian", "mbart", "pegasus", "prophetnet", "t5", "umt5")
IMAGES = (
    "beit", "clip_vision_model", "cvt", "data2vec-vision", "deit", "detr", "dinov2", "dpt", "focalnet",
    "glpn", "hiera", "levit", "mobilevit", "poolformer", "pvt", "regnet", "sam_vision_model", "segformer",
    "siglip_vision_model", "swin", "swinv2", "vit", "vit_msn", "yolos",
)  # fmt: skip
SPEECH = (
    "audio-spectrogram-transformer", "data2vec-audio", "hubert", "sew", "speech_to_text", "unispeech", "wav2vec2",
    "wav2vec2-conformer", "wavlm", "whisper",
)  # fmt: skip
STEP = "_step"
_OWN: dict[str, dict[str, Any]] = {
    "deepseek_v3": {"num_key_value_heads": 4},  # keys come from one latent vector for all heads
    "mamba2": {"num_heads": 8},  # of twice the hidden size
    "sam_vision_model": {"image_size": 256, "output_channels": 64, "global_attn_indexes": [1], "mlp_dim": 512},
    "yolos": {"image_size": [128, 128]},
}
"""What the usual names don't say."""


def entries() -> list[Entry]:
    """Every architecture that is named here."""
    kinds = {
        "encoder": ENCODERS, "decoder": DECODERS, "recurrent": RECURRENT, "encoder and decoder": TRANSLATORS,
        "images": IMAGES, "speech": SPEECH, "one step of a decoder": [name + STEP for name in DECODERS],
    }  # fmt: skip
    return [Entry("transformers", family, model) for family, models in kinds.items() for model in models]


def make(model: str, batch: int) -> Network:
    """A network of two layers, mostly."""
    torchvision()
    import torch
    import transformers

    torch.manual_seed(0)
    kind = model.removesuffix(STEP)
    config = small(kind)
    if kind in DECODERS:
        module = transformers.AutoModelForCausalLM.from_config(config, **_experts(config))
        if model.endswith(STEP):
            return decoder_step(model, module, batch)
        module.config.use_cache = False
        return module.eval(), {"input_ids": words(model, config.vocab_size, batch, TOKENS)}
    module = transformers.AutoModel.from_config(config)
    for name, weights in module.named_parameters():
        if "rel_pos" in name:  # zeros until they are trained
            torch.nn.init.normal_(weights, std=0.1)
    return module.eval(), _inputs(model, module, batch)


def small(kind: str) -> Any:
    """The configuration of an architecture with small sizes where it has them by the usual names."""
    import transformers

    usual = transformers.AutoConfig.for_model(kind)
    numbers = {name for name in SMALL if isinstance(getattr(usual, name, None), int)}
    free = {name for name in numbers if not isinstance(inspect.getattr_static(type(usual), name, None), property)}
    return transformers.AutoConfig.for_model(kind, **{name: SMALL[name] for name in free} | _OWN.get(kind, {}))


def _experts(config: Any) -> dict[str, str]:
    """Of a mixture of experts, the way of computing it whose shapes don't depend on values."""
    is_mixture = any(hasattr(config, name) for name in ("num_experts", "num_local_experts", "n_routed_experts"))
    return {"experts_implementation": "batched_mm"} if is_mixture else {}


def _inputs(model: str, module: "torch.nn.Module", batch: int) -> Arrays:
    config: Any = module.config
    name = module.main_input_name
    if name != "input_ids":
        inputs = {name: image(model, batch, *_signal(name, config))}
    else:
        tokens = FEW_TOKENS if model in RECURRENT else TOKENS
        inputs = {name: words(model, config.vocab_size, batch, tokens)}
        if model in ENCODERS:
            inputs["attention_mask"] = (np.arange(tokens) < tokens - PADDED)[None].repeat(batch, 0).astype(np.int64)
    if config.is_encoder_decoder and "decoder_input_ids" in inspect.signature(module.forward).parameters:
        inputs["decoder_input_ids"] = words(f"{model} begun", config.vocab_size, batch, FEW_TOKENS)
    return inputs


def _signal(name: str, config: Any) -> tuple[int, ...]:
    """The shape of an image, of samples of a sound, or of its spectrum."""
    if name == "pixel_values":
        side = getattr(config, "image_size", None) or SIDE
        high, wide = side if isinstance(side, (list, tuple)) else (side, side)
        return getattr(config, "num_channels", 3), high, wide
    if name == "input_values":
        return (config.max_length, config.num_mel_bins) if hasattr(config, "num_mel_bins") else (SAMPLES,)
    if hasattr(config, "num_mel_bins"):
        return config.num_mel_bins, 2 * config.max_source_positions
    return FRAMES, config.input_feat_per_channel * config.input_channels
