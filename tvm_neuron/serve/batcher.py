"""Batcher: requests of one model that come within a short time become one call of its library."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.errors import NeuronError, QueueFullError
from tvm_neuron.runtime.service import LoadedModel

Arrays = dict[str, NDArray[Any]]
Observe = Callable[[Arrays, int], None]
"""Told of each call: its inputs and how many requests are in it."""


@dataclass
class _Waiting:
    inputs: Arrays
    rows: int
    answer: "asyncio.Future[Arrays]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    @property
    def signature(self) -> tuple[Any, ...]:
        """Those of one signature can be in one call: they differ in their rows alone."""
        return tuple(sorted((name, array.dtype.str, array.shape[1:]) for name, array in self.inputs.items()))


class Batcher:
    """Asks `model`, in calls of at most `rows` rows for what came within `window_seconds`; it is of one event loop.

    Holds at most `most` requests. With no rows (0) every request is a call of its own.
    """

    def __init__(self, model: LoadedModel, rows: int, window_seconds: float, most: int, observe: Observe) -> None:
        self._model, self._rows, self._window, self._most = model, rows, window_seconds, most
        self._observe = observe
        self._waiting: list[_Waiting] = []
        self._calls: set[asyncio.Task[None]] = set()
        self.held = 0

    async def infer(self, inputs: Arrays) -> Arrays:
        """The outputs by name.

        Raises:
            QueueFullError: it holds as many requests as it may.
            NeuronError: what the library raises for these inputs.
        """
        if self.held >= self._most:
            raise QueueFullError(
                f"model '{self._model.name}' holds {self.held} requests, the most that it may (QUEUE_FULL): try again "
                "later, or start the server with --queue more"
            )
        self.held += 1
        try:
            if not self._rows:
                self._observe(inputs, 1)
                return await self._model.infer_async(inputs)
            return await self._together(_Waiting(inputs, len(next(iter(inputs.values())))))
        finally:
            self.held -= 1

    async def close(self) -> None:
        """Returns when all that it holds is answered."""
        self._flush()
        while self._calls:
            await asyncio.wait(self._calls)

    def _together(self, one: _Waiting) -> "asyncio.Future[Arrays]":
        if not self._waiting:
            asyncio.get_running_loop().call_later(self._window, self._flush)
        self._waiting.append(one)
        if sum(each.rows for each in self._waiting) >= self._rows:
            self._flush()
        return one.answer

    def _flush(self) -> None:
        """Makes calls of all that waits."""
        groups: dict[tuple[Any, ...], list[_Waiting]] = {}
        for one in self._waiting:
            if not one.answer.done():  # its client has gone
                groups.setdefault(one.signature, []).append(one)
        self._waiting = []
        for group in groups.values():
            for batch in _filled(group, self._rows):
                call = asyncio.get_running_loop().create_task(self._call(batch))
                self._calls.add(call)
                call.add_done_callback(self._calls.discard)
                for one in batch:
                    one.answer.add_done_callback(partial(_end_if_nobody_waits, call, batch))

    async def _call(self, batch: Sequence[_Waiting]) -> None:
        names = batch[0].inputs
        inputs = {name: np.concatenate([one.inputs[name] for one in batch]) for name in names}
        try:
            self._observe(inputs, len(batch))
            outputs = await self._model.infer_async(inputs)
        except NeuronError as error:
            if len(batch) == 1 or isinstance(error, QueueFullError):
                for one in batch:
                    _fail(one, error)
                return
            for one in batch:  # only one of them may be at fault
                await self._call([one])
        except BaseException as error:
            for one in batch:
                _fail(one, error)
        else:
            begin = 0
            for one in batch:
                if not one.answer.done():
                    rows = slice(begin, begin + one.rows)
                    one.answer.set_result({name: array[rows] for name, array in outputs.items()})
                begin += one.rows


def _end_if_nobody_waits(call: "asyncio.Task[None]", batch: Sequence[_Waiting], _answer: object) -> None:
    """Withdraws a call if its clients have gone, or waited too long; after its answers it has ended anyhow."""
    if all(one.answer.done() for one in batch):
        call.cancel()


def _fail(one: _Waiting, error: BaseException) -> None:
    if not one.answer.done():
        one.answer.set_exception(error)


def _filled(group: Sequence[_Waiting], rows: int) -> list[list[_Waiting]]:
    """In order, in batches of at most so many rows; a request of more is one by itself."""
    found: list[list[_Waiting]] = [[]]
    for one in group:
        if found[-1] and sum(each.rows for each in found[-1]) + one.rows > rows:
            found.append([])
        found[-1].append(one)
    return found
