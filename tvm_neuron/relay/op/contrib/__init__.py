"""Other compilers' patterns, as Relay had them under `relay.op.contrib`; ours is `neuron`."""

from tvm_neuron.relay.op.contrib.register import get_pattern_table, register_pattern_table

__all__ = ["get_pattern_table", "register_pattern_table"]
