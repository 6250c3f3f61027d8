"""docs/relay.md is what the declarations say."""

from tvm_neuron.relay.manual import MANUAL, manual


def test_it_is_up_to_date() -> None:
    assert MANUAL.read_text() == manual(), "make it again: python -m tvm_neuron.relay.manual"
