"""Under load: 64 connections, a model that comes and goes, clients that vanish; every answer is the right one."""

import http.client
import json
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.serve.conftest import Server, Start, expected
from tests.serve.test_server import CLOSE, curl, request
from tvm_neuron.runtime.service import Service

pytestmark = [pytest.mark.serve, pytest.mark.slow]
CONNECTIONS, EACH = 64, 10


def draw(seed: tuple[int, int]) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((int(rng.integers(1, 4)), 16)).astype(np.float32)


def told(times: list[float], seconds: float) -> str:
    middle, late = np.quantile(times, [0.5, 0.99]) * 1e3
    return f"{len(times) / seconds:.0f} requests/s, p50 {middle:.1f} ms, p99 {late:.1f} ms\n"


def over_http(server: Server, number: int, times: list[float]) -> None:
    connection = http.client.HTTPConnection(server.http.removeprefix("http://"), timeout=60)
    for turn in range(EACH):
        x, begin = draw((number, turn)), time.monotonic()
        connection.request("POST", "/v2/models/m/infer", json.dumps(request(x, id=f"{number}.{turn}")))
        answer = connection.getresponse()
        found = json.loads(answer.read())
        times.append(time.monotonic() - begin)
        assert (answer.status, found.get("id")) == (200, f"{number}.{turn}"), found
        np.testing.assert_allclose(np.reshape(found["outputs"][0]["data"], (-1, 8)), expected(x), **CLOSE)
    connection.close()


def over_grpc(server: Server, number: int, times: list[float]) -> None:
    import tritonclient.grpc as module

    client = module.InferenceServerClient(server.grpc)
    for turn in range(EACH):
        x, begin = draw((number, turn)), time.monotonic()
        given = module.InferInput("x", list(x.shape), "FP32")
        given.set_data_from_numpy(x)
        found = client.infer("m", [given], request_id=f"{number}.{turn}")
        times.append(time.monotonic() - begin)
        assert found.get_response().id == f"{number}.{turn}"
        np.testing.assert_allclose(found.as_numpy("y"), expected(x), **CLOSE)
    client.close()


def vanish(server: Server, until: threading.Event) -> int:
    """Asks, and is gone before the answer, now and then amid the request."""
    host, port = server.http.removeprefix("http://").split(":")
    count = 0
    while not until.is_set():
        body = json.dumps(request(draw((999, count)))).encode()
        head = f"POST /v2/models/m/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(head + body[: len(body) // (1 + count % 2)])
        count += 1
        time.sleep(0.05)
    return count


def come_and_go(server: Server, until: threading.Event) -> tuple[int, int]:
    """Another model is unloaded and loaded, and asked: what it answers is right, or that it is not there."""
    rounds = answers = 0
    while not until.is_set():
        for what in ("unload", "load"):
            assert curl(f"{server.http}/v2/repository/models/twice/{what}", method="POST")[0] == 200
            x = draw((777, rounds))
            code, found = curl(f"{server.http}/v2/models/twice/infer", request(x))
            assert code == (503 if what == "unload" else 200)
            if code == 200:
                np.testing.assert_allclose(np.reshape(found["outputs"][0]["data"], (-1, 8)), expected(x, 2.0), **CLOSE)
                answers += 1
        rounds += 1
    return rounds, answers


def test_no_answer_is_lost_crossed_or_given_twice(
    start: Start, libraries: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    words = (f"m={libraries['any']}", f"twice={libraries['twice']}", "--cores", 2)
    server = start(*words, "--batch-window-us", 1000, "--queue", 256)
    times: dict[str, list[float]] = {"http": [], "grpc": []}
    until = threading.Event()
    with ThreadPoolExecutor(CONNECTIONS + 2) as pool:
        others = [pool.submit(vanish, server, until), pool.submit(come_and_go, server, until)]
        begin = time.monotonic()
        work: list[Any] = []
        for number in range(CONNECTIONS):
            kind, ask = (("http", over_http), ("grpc", over_grpc))[number % 2]
            work.append(pool.submit(ask, server, number, times[kind]))
        for each in work:
            each.result()
        seconds = time.monotonic() - begin
        until.set()
        vanished, (rounds, answers) = (each.result() for each in others)
    assert vanished > 0
    assert rounds == answers > 0
    text = curl(f"{server.http}/metrics")[1]
    numbers = {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in text.splitlines() if line[:1] != "#"}
    half = CONNECTIONS // 2 * EACH
    assert numbers['neuron_requests_total{model="m",protocol="grpc",status="OK",version="1"}'] == half
    assert numbers['neuron_requests_total{model="m",protocol="rest",status="OK",version="1"}'] >= half
    assert not any(name.startswith("neuron_failures_total") and value for name, value in numbers.items())
    assert server.end() == 0
    with capsys.disabled():
        sys.stdout.write(f"\nserver, both doors: {told(times['http'] + times['grpc'], seconds)}")
        sys.stdout.write(f"in process: {told(*in_process(libraries['any']))}")


def in_process(library: Path) -> tuple[list[float], float]:
    """The same requests to `runtime.service`, by as many threads."""
    times: list[float] = []
    with Service(total_cores=2) as service:
        model = service.load(library, replicas=2, requests=256)
        model.start()

        def ask(number: int) -> None:
            for turn in range(EACH):
                x, begin = draw((number, turn)), time.monotonic()
                found = model.infer({"x": x})["y"]
                times.append(time.monotonic() - begin)
                np.testing.assert_allclose(found, expected(x), **CLOSE)

        begin = time.monotonic()
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            list(pool.map(ask, range(CONNECTIONS)))
        return times, time.monotonic() - begin
