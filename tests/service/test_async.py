"""`await model.infer_async(...)`: the same answers as threads get, while the loop goes on with other tasks."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.service.conftest import WEIGHTS
from tvm_neuron.errors import InferTimeoutError, InputError, QueueFullError
from tvm_neuron.runtime.service import LoadedModel, Service


def numbered(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((4, 64)).astype(np.float32)


def test_each_task_gets_its_own_answer(library: Path) -> None:
    async def ask(model: LoadedModel) -> list[dict[str, np.ndarray]]:
        return await asyncio.gather(*(model.infer_async({"x": numbered(seed)}) for seed in range(20)))

    with Service(total_cores=2, environment={}) as service:
        model = service.load(library, replicas=2, requests=20)
        model.start()
        for seed, outputs in enumerate(asyncio.run(ask(model))):
            x = numbered(seed).astype(np.float64)
            bound = 2.0**-7 * (np.abs(x) @ np.abs(WEIGHTS))  # both operands are rounded to bfloat16
            assert (np.abs(outputs["y"] - x @ WEIGHTS) <= bound).all()
        with pytest.raises(InputError, match="input 'z' is not one of the model's; it takes 'x'"):
            asyncio.run(model.infer_async({"z": numbered(0)}))


class Gated:
    """An executor that waits at a gate."""

    outputs: tuple[Any, ...] = ()

    def __init__(self, gate: threading.Event) -> None:
        self.gate = gate
        self.runs = 0

    def run(self) -> None:
        self.runs += 1
        assert self.gate.wait(30)


@pytest.fixture
def gate() -> threading.Event:
    return threading.Event()


@pytest.fixture
def executor(gate: threading.Event) -> Gated:
    return Gated(gate)


@pytest.fixture
def model(gate: threading.Event, executor: Any) -> Iterator[LoadedModel]:
    made = LoadedModel("busy", lambda: executor, (0,), 1, 3)
    made.start()
    yield made
    gate.set()
    made.unload()


def test_the_loop_goes_on_and_the_queue_is_bounded(model: LoadedModel, gate: threading.Event) -> None:
    async def ask() -> list[Any]:
        held = [asyncio.create_task(model.infer_async({})) for _ in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(QueueFullError, match=r"model 'busy' holds 3 requests, the most that it may \(QUEUE_FULL\)"):
            await model.infer_async({})
        gate.set()  # which nobody could do if the loop stood still
        return await asyncio.gather(*held)

    assert asyncio.run(ask()) == [{}, {}, {}]


@pytest.mark.parametrize("how", ["cancelled", "too late"])
def test_what_nobody_waits_for_is_withdrawn(
    model: LoadedModel, executor: Gated, gate: threading.Event, how: str
) -> None:
    async def ask() -> None:
        running = [asyncio.create_task(model.infer_async({})) for _ in range(2)]
        while executor.runs < 2:
            await asyncio.sleep(0.001)
        if how == "cancelled":
            waiting = asyncio.create_task(model.infer_async({}))
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        else:
            with pytest.raises(InferTimeoutError, match=r"model 'busy' gave no result within 0.01 s \(TIMEOUT\)"):
                await model.infer_async({}, timeout=0.01)
        waiting = asyncio.create_task(model.infer_async({}))  # would be one too many if that one still counted
        await asyncio.sleep(0)
        gate.set()
        assert await asyncio.gather(*running, waiting) == [{}, {}, {}]
        assert executor.runs == 3

    asyncio.run(ask())
