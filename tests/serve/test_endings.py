"""How requests and the server itself end: full queues, timeouts, clients that leave, SIGTERM."""

import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.serve.conftest import Server, Start, expected
from tests.serve.test_server import CLOSE, curl, draw, request, triton

pytestmark = pytest.mark.serve


def wait_until_held(server: Server, count: int, seconds: float = 10.0) -> None:
    until = time.monotonic() + seconds
    while f'neuron_requests_held{{model="m",version="1"}} {count}.0' not in curl(f"{server.http}/metrics")[1]:
        assert time.monotonic() < until


def connected(server: Server) -> socket.socket:
    host, port = server.http.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)))


def send(connection: socket.socket, part: float = 1.0) -> None:
    body = json.dumps(request(draw(1))).encode()
    head = f"POST /v2/models/m/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    connection.sendall(head + body[: int(part * len(body))])


def statuses(server: Server) -> list[str]:
    return sorted(line["status"] for line in server.log if line["event"] == "request")


def test_full_queues_timeouts_and_draining(start: Start, libraries: dict[str, Path]) -> None:
    """A window of a second holds what comes: the queue is full; then SIGTERM, and what is held gets its answer."""
    server = start(f"m={libraries['any']}", "--batch-window-us", 1_500_000, "--queue", 2)
    x = draw(1)
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda _: curl(f"{server.http}/v2/models/m/infer", request(x)), range(6)))
        assert sorted(code for code, _ in found) == [200, 200, 429, 429, 429, 429]
        assert "holds 2 requests, the most that it may (QUEUE_FULL)" in next(t["error"] for c, t in found if c == 429)
        late = [pool.submit(curl, f"{server.http}/v2/models/m/infer", request(x)) for _ in range(2)]
        wait_until_held(server, 2)
        assert server.end() == 0
        for each in late:
            code, told = each.result()
            assert code == 200
            np.testing.assert_allclose(told["outputs"][0]["data"], expected(x)[0], **CLOSE)
    assert [line["event"] for line in server.log if line["event"] in ("draining", "end")] == ["draining", "end"]
    assert statuses(server) == ["OK"] * 4 + ["UNAVAILABLE"] * 4


def test_requests_that_take_too_long(start: Start, libraries: dict[str, Path]) -> None:
    words = ("--batch-window-us", 2_000_000, "--request-timeout-seconds", 0.2)
    server = start(f"m={libraries['any']}", *words)
    code, told = curl(f"{server.http}/v2/models/m/infer", request(draw(1)))
    assert (code, "gave no answer within 0.2 s (TIMEOUT)" in told["error"]) == (504, True)
    assert server.end() == 0


def test_clients_that_leave_give_their_places_back(start: Start, libraries: dict[str, Path]) -> None:
    """Two places, and a window that holds requests for a minute: others could not ask until then."""
    server = start(f"m={libraries['any']}", "--batch-window-us", 60_000_000, "--queue", 2)
    with connected(server) as one, connected(server) as other:
        send(one)
        send(other)
        wait_until_held(server, 2)
    wait_until_held(server, 0)
    module, client = triton(server, "grpc")
    given = module.InferInput("x", [1, 16], "FP32")
    given.set_data_from_numpy(draw(1))
    with pytest.raises(module.InferenceServerException, match="Deadline Exceeded"):
        client.infer("m", [given], client_timeout=0.5)
    client.close()
    wait_until_held(server, 0)
    with connected(server) as one:
        send(one, part=0.5)
        time.sleep(0.2)
    assert server.end() == 0
    assert statuses(server) == ["CANCELLED"] * 4


def test_sigterm_does_not_wait_for_ever(start: Start, libraries: dict[str, Path]) -> None:
    """Neither for those that never end their question, nor for answers that take longer than it was told."""
    server = start(f"m={libraries['any']}", "--batch-window-us", 60_000_000, "--drain-seconds", 0.2)
    with connected(server) as stalled, ThreadPoolExecutor(1) as pool:
        send(stalled, part=0.5)
        answer = pool.submit(curl, f"{server.http}/v2/models/m/infer", request(draw(1)))
        wait_until_held(server, 1)
        begin = time.monotonic()
        assert server.end() == 0
        assert time.monotonic() - begin < 20
        code, told = answer.result()
    assert (code, told["error"]) == (503, "the server ends, and has not waited longer than --drain-seconds")
    events = [line["event"] for line in server.log if line["event"] != "library"]
    assert [event for event in events if event != "request"][-3:] == ["draining", "drain timeout", "end"]
    assert statuses(server) == ["CANCELLED", "UNAVAILABLE"]


@pytest.mark.parametrize("late", ["waits", "is over"])
def test_calls_that_nobody_waits_for_are_withdrawn(late: str) -> None:
    """A batch whose clients have all gone is not run; one of them that stays gets its answer."""
    import asyncio
    import threading

    from tvm_neuron.runtime.service import LoadedModel
    from tvm_neuron.serve.batcher import Batcher

    gate, ran = threading.Event(), list[int]()

    class Gated:
        outputs: tuple[Any, ...] = ()

        def run(self, x: np.ndarray) -> None:
            ran.append(len(x))
            assert gate.wait(30)

    executor: Any = Gated()
    model = LoadedModel("busy", lambda: executor, (0,), 1, 8)
    model.start()

    async def ask() -> None:
        batcher = Batcher(model, 2, 0.0, 8, lambda _inputs, _requests: None)
        array = np.ones((1, 1), np.float32)
        running = [asyncio.create_task(model.infer_async({"x": array})) for _ in range(2)]  # all of its threads
        while len(ran) < 2:
            await asyncio.sleep(0.001)
        waiting = [asyncio.create_task(batcher.infer({"x": array})) for _ in range(2)]
        await asyncio.sleep(0.05)
        waiting[0].cancel()
        if late == "is over":
            waiting[1].cancel()
        await asyncio.wait(waiting, timeout=0.05)
        gate.set()
        await asyncio.gather(*running)
        if late == "waits":
            assert await waiting[1] == {}
        await batcher.close()
        assert ran == ([1, 1, 2] if late == "waits" else [1, 1])
        assert batcher.held == 0

    asyncio.run(ask())
    model.unload()
