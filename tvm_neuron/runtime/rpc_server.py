"""TVM's RPC server with NeuronCores: `python -m tvm_neuron.runtime.rpc_server --host 0.0.0.0 --port 9090`.

Scripts use it as any server of TVM's: `remote = tvm.rpc.connect(host, port)`, `remote.upload`, `remote.load_module`,
and `graph_executor.GraphModule(library["default"](remote.cpu()))`.
"""

import argparse
import logging
from collections.abc import Sequence

from tvm.rpc.server import PopenRPCServerState

from tvm_neuron.runtime.remote import serve_executors


def start(host: str, port: int, port_end: int, key: str = "", tracker: tuple[str, int] | None = None) -> int:
    """Serves in a thread, each connection in a process of its own; the port, the first free one before `port_end`.

    Raises ValueError: there is none.
    """
    serve_executors()
    return int(PopenRPCServerState(host, port, port_end, tracker_addr=tracker, key=key).port)


def main(arguments: Sequence[str] | None = None) -> None:
    """The command; it ends when its process is."""
    parser = argparse.ArgumentParser(prog="python -m tvm_neuron.runtime.rpc_server", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen at; 0.0.0.0 for all")
    parser.add_argument("--port", type=int, default=9090)
    parser.add_argument("--port-end", type=int, help="the end of the ports that are tried; a hundred if not given")
    parser.add_argument("--key", default="", help="what a tracker calls this kind of server")
    parser.add_argument("--tracker", metavar="HOST:PORT", help="a tracker to announce the server to")
    options = parser.parse_args(arguments)
    tracker = None
    if options.tracker:
        host, _, port = options.tracker.rpartition(":")
        if not host or not port.isdigit() or not options.key:
            parser.error("--tracker is HOST:PORT, and needs a --key")
        tracker = (host, int(port))
    logging.basicConfig(level=logging.INFO)  # TVM says where it listens
    try:
        start(options.host, options.port, options.port_end or options.port + 100, options.key, tracker)
    except (OSError, ValueError) as error:
        parser.error(f"no server at {options.host}:{options.port}: {error}")


if __name__ == "__main__":
    main()
