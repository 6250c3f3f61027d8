"""The `neuron-cc` command: one file per command, no logic of their own."""
