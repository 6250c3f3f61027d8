"""What was compiled once: a folder of results, found by the hash of all that they were made from."""

from tvm_neuron.cache.fingerprint import fingerprint
from tvm_neuron.cache.place import open_store
from tvm_neuron.cache.store import Store

__all__ = ["Store", "fingerprint", "open_store"]
