"""Server: both doors open at once, until a signal; then what is held is answered, and everything ends."""

import asyncio
import logging
import signal
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import grpc
import uvicorn
from kserve.protocol.grpc.grpc_predict_v2_pb2_grpc import add_GRPCInferenceServiceServicer_to_server

from tvm_neuron.errors import ServiceError
from tvm_neuron.serve.calls import Calls, Log, LogHandler
from tvm_neuron.serve.grpc_door import Door
from tvm_neuron.serve.metrics import Metrics
from tvm_neuron.serve.repository import Repository
from tvm_neuron.serve.rest import make_app
from tvm_neuron.serve.settings import Place, Settings

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_LOOK_SECONDS = 0.02
_CLOSE_SECONDS = 3  # for answers on their way to slow clients, and for those who never end their question


class _Uvicorn(uvicorn.Server):
    """Leaves signals to us."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def serve(places: Sequence[Place], settings: Settings, log: Log) -> None:
    """Serves models until SIGTERM or SIGINT.

    Raises:
        NeuronError: a model can't be loaded, or an address not be listened at.
    """
    metrics = Metrics()
    repository = Repository(places, settings, metrics)
    calls = Calls(repository, metrics, log)
    logging.getLogger().handlers = [LogHandler(log)]
    stop = asyncio.Event()
    for number in _SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    listening = _listen(settings)
    with listening:
        for place in places:
            await repository.load(place.name)
        app = make_app(calls, settings.body_bytes)
        config = uvicorn.Config(app, log_config=None, lifespan="off", timeout_graceful_shutdown=_CLOSE_SECONDS)
        rest = _Uvicorn(config)
        door, grpc_port = _grpc_door(calls, settings)
        await door.start()
        serving = asyncio.create_task(rest.serve([listening]))
        while not rest.started and not serving.done():
            await asyncio.sleep(_LOOK_SECONDS)
        for place in places:
            served = repository.find(place.name, place.version)
            log.write(
                "model", name=place.name, version=place.version, file=place.path, cores=served.model.cores,
                batched=served.takes_any_rows and settings.batch_window_us > 0,
            )  # fmt: skip
        log.write(
            "ready", http=f"http://{settings.host}:{listening.getsockname()[1]}",
            grpc=f"{settings.host}:{grpc_port}", reachable=_reachable(settings),
        )  # fmt: skip
        await stop.wait()
        is_done = await _drain(repository, settings, log)
        rest.should_exit = True
        await asyncio.gather(serving, door.stop(_CLOSE_SECONDS))
    if is_done:
        await repository.close()
    log.write("end")


async def _drain(repository: Repository, settings: Settings, log: Log) -> bool:
    """No new requests; those that are held get their answers, for so long. Whether all have got theirs."""
    repository.is_draining = True
    log.write("draining", held=repository.held)
    until = time.monotonic() + settings.drain_seconds
    while repository.held and time.monotonic() < until:
        await asyncio.sleep(_LOOK_SECONDS)
    if not repository.held:
        return True
    log.write("drain timeout", held=repository.held)
    repository.give_up()
    return False


def _listen(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.http_port), family=family, backlog=1024)
    except OSError as error:
        raise ServiceError(_busy(settings, settings.http_port, "--http-port", str(error))) from error


def _grpc_door(calls: Calls, settings: Settings) -> tuple[grpc.aio.Server, int]:
    limits = [
        ("grpc.max_receive_message_length", settings.body_bytes), ("grpc.max_send_message_length", -1),
        ("grpc.so_reuseport", 0),
    ]  # fmt: skip
    door = grpc.aio.server(options=limits)
    add_GRPCInferenceServiceServicer_to_server(Door(calls), door)
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    try:
        return door, door.add_insecure_port(f"{host}:{settings.grpc_port}")
    except RuntimeError as error:
        raise ServiceError(_busy(settings, settings.grpc_port, "--grpc-port", "it is in use")) from error


def _busy(settings: Settings, port: int, option: str, why: str) -> str:
    return f"{settings.host}:{port} can't be listened at ({why}): free it, or give another by {option} or --host"


def _reachable(settings: Settings) -> str:
    if settings.is_local:
        return "from this machine only, without TLS and authentication; --host opens it to others"
    return "by everybody who reaches this address, without TLS and authentication: put a proxy in front that has them"
