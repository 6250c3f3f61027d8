"""Engine streams: splitting a program over its queues and joining it again."""

import pytest
from hypothesis import given

from tests.program.strategies import bodies
from tvm_neuron.errors import ProgramError
from tvm_neuron.isa import Activation, Memset, Tile, affine
from tvm_neuron.program import Loop, Node, join, split, walk
from tvm_neuron.program.streams import Step, Stream, StreamLoop

TILE = Tile("sbuf", "float32", affine(0), 1, affine(0), ((1, 4),))
MEMSET = Memset(result=TILE, value=0.0)
RELU = Activation(result=TILE, source=TILE, scale=1.0, bias=0.0, function="relu")


@given(bodies)
def test_join_undoes_split(body: tuple[Node, ...]) -> None:
    assert join(split(body)) == body


@given(bodies)
def test_a_stream_holds_its_queue_in_order(body: tuple[Node, ...]) -> None:
    for queue, stream in split(body).items():
        expected = [(counts, instruction) for counts, instruction in walk(body) if instruction.queue == queue]
        assert _walk(stream, ()) == expected


def _walk(stream: Stream, counts: tuple[int, ...]) -> list[tuple[tuple[int, ...], object]]:
    found: list[tuple[tuple[int, ...], object]] = []
    for node in stream:
        inner = (
            _walk(node.body, (*counts, node.count)) if isinstance(node, StreamLoop) else [(counts, node.instruction)]
        )
        found += inner
    return found


def test_loops_are_shared_and_left_out() -> None:
    streams = split((Loop(3, (MEMSET, RELU)), Loop(5, (RELU,))))
    assert streams == {
        "act": (StreamLoop(0, 3, (Step(2, RELU),)), StreamLoop(3, 5, (Step(4, RELU),))),
        "pool": (StreamLoop(0, 3, (Step(1, MEMSET),)),),
    }


def test_split_refuses_an_empty_loop() -> None:
    with pytest.raises(ProgramError, match="loop number 1, run 4 times, holds no instruction: remove it"):
        split((MEMSET, Loop(4, ())))


@pytest.mark.parametrize(
    ("streams", "message"),
    [
        ({"act": (Step(1, RELU),)}, "number 0 is missing, number 1 is there"),
        ({"act": (Step(0, RELU),), "pool": (Step(0, MEMSET),)}, "number 0 means different things"),
        ({"act": (Step(0, RELU),), "pool": (StreamLoop(0, 2, (Step(1, MEMSET),)),)}, "number 0 means different things"),
        (
            {"act": (StreamLoop(0, 3, (Step(1, RELU),)),), "pool": (StreamLoop(0, 2, (Step(2, MEMSET),)),)},
            "number 0 means different things",
        ),
    ],
)
def test_join_refuses_strangers(streams: dict[str, Stream], message: str) -> None:
    with pytest.raises(ProgramError, match=f"engine streams don't fit together: {message}"):
        join(streams)
