"""Without jax there is nothing to collect here."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("jax") else ["test_*.py", "functions.py"]
