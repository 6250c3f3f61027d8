"""Without jax there is nothing to collect here. With it, jax has eight CPU devices, as references of several cores."""

import os
from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("jax") else ["test_*.py", "functions.py"]

os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8".strip()
