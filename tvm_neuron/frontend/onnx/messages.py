"""messages: all that a model consists of, whatever it lies in: graphs, nodes, tensors, inner graphs, functions."""

from collections.abc import Iterator

from google.protobuf.message import Message


def messages(message: Message) -> Iterator[Message]:
    """A message and those in it, at any depth."""
    yield message
    for field, value in message.ListFields():
        if field.message_type is not None:
            for each in (value,) if isinstance(value, Message) else value:
                yield from messages(each)


def broken_texts(message: Message) -> Iterator[tuple[Message, str]]:
    """The messages with a text that is no UTF-8, which protobuf gives as bytes, and the names of those fields."""
    for each in messages(message):
        for field, value in each.ListFields():
            if field.type == field.TYPE_STRING:
                texts = (value,) if isinstance(value, str | bytes) else value
                if any(isinstance(text, bytes) for text in texts):
                    yield each, field.name
