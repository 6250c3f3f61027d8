"""neuron-cc serve: models behind REST and gRPC, by the Open Inference Protocol v2.

Examples:
  neuron-cc serve model.so
  neuron-cc serve bert:1=old.so bert:2=new.so resnet=r.so --cores 2 --batch-window-us 200

It listens on the loopback address unless --host says otherwise, and has neither TLS nor authentication. Libraries that
were compiled with --dynamic-batch get requests that come within --batch-window-us as one batch. SIGTERM ends it when
what it holds is answered. Lines of JSON on stderr say what it does; GET /metrics is for Prometheus.
"""

import argparse
from dataclasses import fields

from tvm_neuron.errors import from_extra
from tvm_neuron.serve.settings import Settings, places

NAME = "serve"
_HELP = {
    "host": "address to listen at (127.0.0.1)",
    "http_port": "port of REST (8000); 0: any",
    "grpc_port": "port of gRPC (8001); 0: any",
    "cores": "NeuronCores of each model, on which copies of it work side by side (those of one copy)",
    "batch_window_us": "how long a request waits for others to be in one batch (0)",
    "queue": "requests that a model holds at once; more get 429 or UNAVAILABLE (64)",
    "request_timeout_seconds": "after it a request gets 504 or DEADLINE_EXCEEDED (60)",
    "drain_seconds": "how long SIGTERM waits for answers (30)",
    "body_bytes": "largest request (67108864)",
    "rows": "most rows of a request to a library that takes any number (1024)",
}
_TYPES = {"host": str, "request_timeout_seconds": float, "drain_seconds": float}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument(
        "models", nargs="+", metavar="MODEL", help="a library (.so): FILE, NAME=FILE, NAME:VERSION=FILE"
    )
    for field in fields(Settings):
        kind = _TYPES.get(field.name, int)
        parser.add_argument(
            f"--{field.name.replace('_', '-')}", type=kind, default=field.default, metavar="N" if kind is int else "V",
            help=_HELP[field.name],
        )  # fmt: skip


def run(options: argparse.Namespace) -> None:
    """Serves until SIGTERM or Ctrl-C.

    Raises:
        NeuronError: a file can't be loaded, an address is taken, an option has no such value.
    """
    chosen = Settings(**{field.name: getattr(options, field.name) for field in fields(Settings)})
    found = places(options.models)
    with from_extra("serve", "a server"):
        import asyncio

        from tvm_neuron.serve.calls import Log
        from tvm_neuron.serve.server import serve
    asyncio.run(serve(found, chosen, Log()))
