"""The door of REST: the protocol's paths, metrics, loading and unloading, by FastAPI."""

import asyncio
from typing import Any

import orjson
from fastapi import FastAPI, Request, Response
from kserve.protocol.infer_type import InferRequest
from starlette.requests import ClientDisconnect

from tvm_neuron.errors import InputError, NeuronError, TooLargeError
from tvm_neuron.runtime import VERSION
from tvm_neuron.serve.calls import Calls
from tvm_neuron.serve.metrics import TYPE
from tvm_neuron.serve.protocol import read_rest, rest_answer, status_of

JSON_BYTES = "Inference-Header-Content-Length"
EXTENSIONS = ("model_repository", "binary_tensor_data")


def make_app(calls: Calls, body_bytes: int) -> FastAPI:
    """The application; bodies of more than `body_bytes` are refused, without being kept."""
    app = FastAPI(title="tvm_neuron", version=VERSION, docs_url=None, redoc_url=None, openapi_url=None)

    @app.exception_handler(NeuronError)
    async def refused(_request: Request, error: NeuronError) -> Response:
        return _json({"error": str(error)}, status_of(error)[0])

    @app.exception_handler(ClientDisconnect)
    async def gone(_request: Request, error: ClientDisconnect) -> Response:
        return Response(status_code=status_of(error)[0])

    @app.exception_handler(Exception)
    async def failed(_request: Request, error: Exception) -> Response:
        return _json({"error": f"{type(error).__name__}: this is a defect of the server"}, 500)

    @app.get("/v2")
    async def server() -> Response:
        return _json({"name": "tvm_neuron", "version": VERSION, "extensions": EXTENSIONS})

    @app.get("/v2/health/live")
    async def live() -> Response:
        return _json({"live": True})

    @app.get("/v2/health/ready")
    async def ready() -> Response:
        is_ready = calls.repository.is_ready
        return _json({"ready": is_ready}, 200 if is_ready else 503)

    @app.get("/v2/models")
    async def models() -> Response:
        return _json({"models": list(dict.fromkeys(place.name for place in calls.repository.places))})

    @app.get("/v2/models/{name}")
    @app.get("/v2/models/{name}/versions/{version}")
    async def metadata(name: str, version: str = "") -> Response:
        return _json(calls.metadata(name, version))

    @app.get("/v2/models/{name}/ready")
    @app.get("/v2/models/{name}/versions/{version}/ready")
    async def model_ready(name: str, version: str = "") -> Response:
        calls.repository.find(name, version)
        return _json({"name": name, "ready": True})

    @app.post("/v2/models/{name}/infer")
    @app.post("/v2/models/{name}/versions/{version}/infer")
    async def infer(name: str, request: Request, version: str = "") -> Response:
        is_read = asyncio.Event()

        async def read() -> InferRequest:
            body = await _body(request, body_bytes)
            is_read.set()
            return read_rest(body, _json_bytes(request, body), name)

        async def left() -> None:
            await is_read.wait()
            await request.receive()

        work = asyncio.create_task(calls.infer(name, version, "rest", read, rest_answer))
        leaving = asyncio.create_task(left())
        try:
            await asyncio.wait((work, leaving), return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                raise ClientDisconnect
            answer, json_bytes = work.result()
        finally:  # what nobody waits for takes no place in a queue
            for task in (work, leaving):
                task.cancel()
        if json_bytes is None:
            return Response(answer, media_type="application/json")
        return Response(answer, media_type="application/octet-stream", headers={JSON_BYTES: str(json_bytes)})

    @app.post("/v2/repository/index")
    async def index() -> Response:
        return _json([
            {"name": p.name, "version": p.version, "state": "READY" if calls.repository.is_loaded(p) else "UNAVAILABLE"}
            for p in calls.repository.places
        ])  # fmt: skip

    @app.post("/v2/repository/models/{name}/load")
    async def load(name: str) -> Response:
        await calls.load(name)
        return _json({"name": name, "load": True})

    @app.post("/v2/repository/models/{name}/unload")
    async def unload(name: str) -> Response:
        await calls.unload(name)
        return _json({"name": name, "unload": True})

    @app.get("/metrics")
    async def metrics() -> Response:
        return Response(calls.metrics.text(), media_type=TYPE)

    return app


def _json(value: Any, status: int = 200) -> Response:
    return Response(orjson.dumps(value), status, media_type="application/json")


async def _body(request: Request, most: int) -> bytes:
    told = request.headers.get("content-length", "")
    if told.isdecimal() and int(told) > most:
        raise _too_large(int(told), most)
    found = bytearray()
    async for piece in request.stream():
        found += piece
        if len(found) > most:
            raise _too_large(len(found), most)
    return bytes(found)


def _too_large(size: int, most: int) -> TooLargeError:
    return TooLargeError(f"the request has {size} bytes or more; the server takes {most} (--body-bytes)")


def _json_bytes(request: Request, body: bytes) -> int:
    told = request.headers.get(JSON_BYTES)
    if told is None:
        return len(body)
    if not told.isdecimal() or int(told) > len(body):
        raise InputError(f"{JSON_BYTES} is '{told}': it must be a number of bytes of the body, which has {len(body)}")
    return int(told)
