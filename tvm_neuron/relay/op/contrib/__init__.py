"""Other compilers' patterns, as Relay had them under `relay.op.contrib`; ours is `neuron`."""
