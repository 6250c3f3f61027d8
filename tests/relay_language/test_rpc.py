"""Libraries on TVM's RPC server: the same results as here, whose inputs are checked there."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import rpc

from tvm_neuron import relay
from tvm_neuron.errors import InputError
from tvm_neuron.relay.graph_executor import GraphModule
from tvm_neuron.runtime import rpc_server
from tvm_neuron.runtime.remote import RemoteExecutor, _served

RNG = np.random.default_rng(4)
X, W = RNG.standard_normal((2, 8), dtype="float32"), RNG.standard_normal((4, 8), dtype="float32")


@pytest.fixture(name="lib", scope="module")
def _lib() -> relay.ExecutorFactory:
    x, w = relay.var("x", shape=(2, 8)), relay.var("w", shape=(4, 8))
    mod = tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.dense(x, w)))
    return relay.build(mod, "neuron", params={"w": W})


@pytest.fixture(name="port", scope="module")
def _port() -> Iterator[int]:
    command = [sys.executable, "-u", "-m", "tvm_neuron.runtime.rpc_server", "--host", "127.0.0.1", "--port", "19200"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        assert server.stdout is not None
        found = next(match for line in server.stdout if (match := re.search(r"bind to 127\.0\.0\.1:(\d+)", line)))
        yield int(found[1])
        server.terminate()
        server.stdout.close()


@pytest.mark.slow  # another process has to import TVM
def test_a_library_runs_in_another_process(lib: relay.ExecutorFactory, port: int, tmp_path: Path) -> None:
    lib.export_library(tmp_path / "net.so")
    remote = rpc.connect("127.0.0.1", port)
    remote.upload(bytearray((tmp_path / "net.so").read_bytes()), "net.so")
    device = remote.cpu()
    module = GraphModule(remote.load_module("net.so")["default"](device))
    module.set_input("x", tvm.nd.array(X, device))
    module.run()
    local = GraphModule(lib["default"](tvm.cpu()))
    local.run(x=X)
    np.testing.assert_array_equal(module.get_output(0).numpy(), local.get_output(0).numpy())
    assert module.benchmark(device, repeat=1, number=1).mean > 0
    with pytest.raises(RuntimeError, match=r"input 'x' has shape \[3, 8\]"):  # said by the server
        module.run(x=np.ones((3, 8), "float32"))
    with pytest.raises(InputError, match="the function is no executor of a RPC server: start the server by python -m"):
        GraphModule(remote.get_function("ffi.GetGlobalFuncMetadata"))


def test_it_has_the_methods_of_an_executor(lib: relay.ExecutorFactory) -> None:
    module = GraphModule(tvm_ffi.convert(_served(lib["default"](tvm.cpu()))))
    assert isinstance(module.module, RemoteExecutor)
    assert (module.get_num_inputs(), module.get_num_outputs()) == (1, 1)
    assert module.get_input_info() == ({"x": (2, 8)}, {"x": "float32"})
    assert (module.get_input_index("x"), module.get_input_index("y")) == (0, -1)
    with pytest.raises(InputError, match="input 'x' was not set"):
        module.get_input("x")
    module.set_input(0, X.tolist())
    np.testing.assert_array_equal(module.get_input("x").numpy(), X)
    module.run()
    # each of 8 products is off by a rounding of both its factors to bfloat16
    exact = X.astype("float64") @ W.T
    assert (abs(module.get_output(0).numpy() - exact) <= 2 * 2.0**-8 * (abs(X) @ abs(W).T)).all()
    with pytest.raises(InputError, match="input 'y' is not one of the model's; it takes 'x'"):
        module.set_input("y", X)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tracker", "nowhere", "--key", "x"], "--tracker is HOST:PORT, and needs a --key"),
        (["--tracker", "host:9190"], "--tracker is HOST:PORT, and needs a --key"),
        (["--port", "19200"], r"no server at 127\.0\.0\.1:19200: cannot bind to any port in \[19200, 19300\)"),
    ],
)
def test_what_the_command_refuses(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(host: str, port: int, port_end: int, *_: object) -> None:
        raise ValueError(f"cannot bind to any port in [{port}, {port_end})")

    monkeypatch.setattr(rpc_server, "start", start)  # which would change what libraries of this process give
    with pytest.raises(SystemExit):
        rpc_server.main(arguments)
    assert re.search(message, capsys.readouterr().err)
