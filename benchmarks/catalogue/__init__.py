"""The catalogue: networks of every family of timm, torchvision, transformers and diffusers, measured one by one."""
