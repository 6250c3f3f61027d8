"""The server, asked by clients of others: curl, tritonclient over HTTP and gRPC."""

import json
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.serve.conftest import Server, Start, expected

pytestmark = pytest.mark.serve
RNG = np.random.default_rng(1)
CLOSE = {"rtol": 1e-5, "atol": 1e-5}  # float32 products, added in another order


@pytest.fixture(scope="module")
def server(start: Start, libraries: dict[str, Path]) -> Iterator[Server]:
    """Two versions of `m`, and `fixed`."""
    words = (f"m:1={libraries['any']}", f"m:2={libraries['twice']}", f"fixed={libraries['fixed']}")
    found = start(*words, "--batch-window-us", 3000, "--cores", 1, "--body-bytes", 100_000, "--rows", 64)
    yield found
    assert found.end() == 0
    assert [line["event"] for line in found.log][-2:] == ["draining", "end"]


def curl(url: str, body: Any = None, method: str = "") -> tuple[int, Any]:
    words = ["curl", "-s", "-w", "\n%{http_code}", url]
    words += ["-X", method] if method else []
    words += ["-H", "Content-Type: application/json", "--data-binary", "@-"] if body is not None else []
    text = body if isinstance(body, str) else json.dumps(body)
    done = subprocess.run(words, input=text if body is not None else None, capture_output=True, text=True, check=True)
    answer, _, code = done.stdout.rpartition("\n")
    return int(code), json.loads(answer) if answer.startswith(("{", "[")) else answer


def request(x: np.ndarray, **more: Any) -> dict[str, Any]:
    return {"inputs": [{"name": "x", "shape": list(x.shape), "datatype": "FP32", "data": x.ravel().tolist()}], **more}


def one(shape: list[int], datatype: str, data: list[Any]) -> dict[str, Any]:
    return {"inputs": [{"name": "x", "shape": shape, "datatype": datatype, "data": data}]}


def draw(rows: int) -> np.ndarray:
    return RNG.standard_normal((rows, 16)).astype(np.float32)


def triton(server: Server, kind: str) -> Any:
    if kind == "http":
        import tritonclient.http

        return tritonclient.http, tritonclient.http.InferenceServerClient(server.http.removeprefix("http://"))
    import tritonclient.grpc

    return tritonclient.grpc, tritonclient.grpc.InferenceServerClient(server.grpc)


def test_it_says_where_it_listens(server: Server) -> None:
    ready = server.log[-1]
    assert server.http.startswith("http://127.0.0.1:")
    assert ready["reachable"].startswith("from this machine only, without TLS and authentication")
    assert [line["batched"] for line in server.log if line["event"] == "model"] == [True, True, False]


def test_health_and_metadata_by_curl(server: Server) -> None:
    assert curl(f"{server.http}/v2/health/live") == (200, {"live": True})
    assert curl(f"{server.http}/v2/health/ready") == (200, {"ready": True})
    code, told = curl(f"{server.http}/v2")
    assert (code, told["name"]) == (200, "tvm_neuron")
    assert curl(f"{server.http}/v2/models") == (200, {"models": ["m", "fixed"]})
    code, told = curl(f"{server.http}/v2/models/m")
    assert (code, told["versions"]) == (200, ["1", "2"])
    assert told["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 16]}]
    assert curl(f"{server.http}/v2/models/fixed")[1]["outputs"][0]["shape"] == [2, 8]
    assert curl(f"{server.http}/v2/models/m/versions/1/ready") == (200, {"name": "m", "ready": True})


def test_infer_by_curl(server: Server) -> None:
    x = draw(3)
    for path, factor in (("m", 2.0), ("m/versions/1", 1.0), ("m/versions/2", 2.0)):
        code, told = curl(f"{server.http}/v2/models/{path}/infer", request(x, id="seven"))
        assert (code, told["id"], told["model_name"]) == (200, "seven", "m")
        output = told["outputs"][0]
        assert (output["name"], output["shape"], output["datatype"]) == ("y", [3, 8], "FP32")
        np.testing.assert_allclose(np.reshape(output["data"], (3, 8)), expected(x, factor), **CLOSE)


@pytest.mark.parametrize("kind", ["http", "grpc"])
@pytest.mark.parametrize("binary", [True, False])
def test_infer_by_tritonclient(server: Server, kind: str, binary: bool) -> None:
    module, client = triton(server, kind)
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("m", "1")
    x = draw(5)
    given = module.InferInput("x", [5, 16], "FP32")
    wanted = module.InferRequestedOutput("y")
    if kind == "http":
        given.set_data_from_numpy(x, binary_data=binary)
        wanted = module.InferRequestedOutput("y", binary_data=binary)
    else:
        given.set_data_from_numpy(x)
    answer = client.infer("m", [given], model_version="1", outputs=[wanted], request_id="a")
    np.testing.assert_allclose(answer.as_numpy("y"), expected(x), **CLOSE)
    metadata = client.get_model_metadata("m")
    assert list(metadata["versions"] if kind == "http" else metadata.versions) == ["1", "2"]
    client.close()


@pytest.mark.parametrize(
    ("path", "body", "code", "message"),
    [
        ("nowhere", request(draw(1)), 404, "there is no model 'nowhere'; served are: m, fixed"),
        ("m/versions/3", request(draw(1)), 404, "model 'm' has no version 3; it has 1, 2"),
        ("m", "{", 400, "the request is not of the form"),
        ("m", {"outputs": []}, 400, "the request is not of the form"),
        ("m", {"inputs": 5}, 400, "the request is not of the form"),
        ("m", {"inputs": []}, 400, "input 'x' is missing; the model takes 'x'"),
        ("m", {"inputs": request(draw(1))["inputs"] * 2}, 400, "input 'x' is given twice"),
        ("m", request(draw(65)), 400, "every input must have the same number of rows, from 1 to 64 (--rows): 'x' 65"),
        ("m", request(np.zeros((2, 15), np.float32)), 400, "input 'x' has shape [2, 15]; the model takes [2, 16]"),
        ("fixed", request(draw(3)), 400, "input 'x' has shape [3, 16]; the model takes [2, 16]"),
        ("m", request(draw(2), outputs=[{"name": "z"}]), 400, "output 'z' is not one of the model's; it gives 'y'"),
        ("m", request(draw(600)), 413, "bytes or more; the server takes 100000 (--body-bytes)"),
        (
            "m",
            one([2, 2], "FP32", [1, 2, 3]),
            400,
            "input 'x': its data are not of the shape [2, 2] and datatype FP32: ValueError",
        ),
        ("m", one([1, 16], "INT32", [1] * 16), 400, "input 'x' is int32; the model takes float32: convert it"),
        ("m", one([1, 16], "INT32", [1.7] * 16), 400, "ValueError: there is a value that is none, such as 1.7"),
        ("m", one([1, 16], "FP32", [*[1] * 15, None]), 400, "ValueError: there is a value that is none, such as None"),
        ("m", one([-1, 16], "FP32", [1] * 32), 400, "ValueError: they are of the shape [2, 16]"),
        ("m", one([1, 16], "BYTES", ["a"] * 16), 400, "InvalidInput: invalid datatype BYTES; a model takes BOOL, INT8"),
        ("m", one([1, 16], "FP32", [3e38] * 16), 400, "output 'y' has NaN or infinity, which JSON has no form of"),
    ],
)
def test_wrong_requests_get_one_sentence(server: Server, path: str, body: Any, code: int, message: str) -> None:
    found, told = curl(f"{server.http}/v2/models/{path}/infer", body)
    assert found == code
    assert message in told["error"]


def test_a_wrong_length_of_json(server: Server) -> None:
    url = f"{server.http}/v2/models/m/infer"
    done = subprocess.run(
        ["curl", "-s", url, "-H", "Inference-Header-Content-Length: 9999", "--data-binary", "{}"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert (
        "Inference-Header-Content-Length is '9999': it must be a number of bytes of the body, which has 2"
        in done.stdout
    )


def test_wrong_requests_over_grpc(server: Server) -> None:
    module, client = triton(server, "grpc")
    given = module.InferInput("x", [1, 16], "FP32")
    given.set_data_from_numpy(draw(1))
    for name, version, status in (("nowhere", "", "NOT_FOUND"), ("m", "9", "NOT_FOUND"), ("fixed", "", "INVALID_ARG")):
        with pytest.raises(module.InferenceServerException) as caught:
            client.infer(name, [given], model_version=version)
        assert status in str(caught.value.status())
    strange = module.InferInput("x", [1, 15], "FP32")
    strange.set_data_from_numpy(draw(1)[:, :15])
    strange.set_shape([1, 16])
    with pytest.raises(module.InferenceServerException, match=r"its data are not of the shape \[1, 16\]"):
        client.infer("m", [strange])
    large = module.InferInput("x", [2000, 16], "FP32")
    large.set_data_from_numpy(draw(2000))
    with pytest.raises(module.InferenceServerException) as caught:
        client.infer("m", [large])
    assert "RESOURCE_EXHAUSTED" in str(caught.value.status())
    client.close()


def test_bytes_carry_what_json_has_no_form_of(server: Server) -> None:
    module, client = triton(server, "http")
    given = module.InferInput("x", [1, 16], "FP32")
    x = np.zeros((1, 16), np.float32)
    x[0, 0] = 3e38
    given.set_data_from_numpy(x)
    answer = client.infer("m", [given], model_version="1", outputs=[module.InferRequestedOutput("y")])
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(answer.as_numpy("y"), expected(x), rtol=1e-6)
    assert np.isinf(answer.as_numpy("y")).any()
    client.close()


def test_numbers_in_a_message_of_grpc(server: Server) -> None:
    """Without raw_input_contents, as generated clients have it."""
    import grpc
    from tritonclient.grpc import service_pb2 as pb
    from tritonclient.grpc.service_pb2_grpc import GRPCInferenceServiceStub

    x = draw(2)
    tensor = pb.ModelInferRequest.InferInputTensor(name="x", shape=[2, 16], datatype="FP32")
    tensor.contents.fp32_contents.extend(x.ravel().tolist())
    with grpc.insecure_channel(server.grpc) as channel:
        ask = GRPCInferenceServiceStub(channel).ModelInfer
        answer = ask(pb.ModelInferRequest(model_name="m", model_version="1", inputs=[tensor]))
        y = np.frombuffer(answer.raw_output_contents[0], np.float32).reshape(answer.outputs[0].shape)
        np.testing.assert_allclose(y, expected(x), **CLOSE)
        with pytest.raises(grpc.RpcError, match="raw_input_contents must be there for every input, and contents for n"):
            ask(pb.ModelInferRequest(model_name="m", inputs=[tensor], raw_input_contents=[b""]))


def test_a_wrong_request_does_not_harm_those_it_waits_with(server: Server) -> None:
    bodies = [request(draw(2)), request(np.zeros((2, 15), np.float32)), request(draw(3))] * 4
    with ThreadPoolExecutor(len(bodies)) as pool:
        found = list(pool.map(lambda body: curl(f"{server.http}/v2/models/m/infer", body), bodies))
    assert [code for code, _ in found] == [200, 400, 200] * 4


def test_requests_are_joined_and_counted(server: Server) -> None:
    arrays = [draw(1 + n % 3) for n in range(24)]
    module, client = triton(server, "grpc")
    gate = threading.Barrier(len(arrays))

    def ask(x: np.ndarray) -> np.ndarray:
        given = module.InferInput("x", list(x.shape), "FP32")
        given.set_data_from_numpy(x)
        gate.wait()
        return client.infer("m", [given], model_version="1").as_numpy("y")

    with ThreadPoolExecutor(len(arrays)) as pool:
        for x, y in zip(arrays, pool.map(ask, arrays), strict=True):
            np.testing.assert_allclose(y, expected(x), **CLOSE)
    client.close()
    code, text = curl(f"{server.http}/metrics")
    assert code == 200
    numbers = {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in text.splitlines() if line[:1] != "#"}
    of = '{model="m",version="1"}'
    calls, asked = numbers[f"neuron_batch_requests_count{of}"], numbers[f"neuron_batch_requests_sum{of}"]
    assert calls < asked
    assert numbers[f"neuron_requests_held{of}"] == 0
    assert numbers[f"neuron_device_seconds_total{of}"] > 0
    assert numbers[f"neuron_request_seconds_count{of}"] >= asked
    assert numbers['neuron_requests_total{model="m",protocol="grpc",status="OK",version="1"}'] >= 24
    assert numbers['neuron_requests_total{model="",protocol="rest",status="NOT_FOUND",version=""}'] >= 1
    assert numbers[f"neuron_model_loaded{of}"] == 1


def test_models_are_unloaded_and_loaded(server: Server) -> None:
    assert curl(f"{server.http}/v2/repository/models/fixed/unload", method="POST")[0] == 200
    code, told = curl(f"{server.http}/v2/models/fixed/infer", request(draw(2)))
    assert code == 503
    assert "model 'fixed' is not loaded: POST /v2/repository/models/fixed/load" in told["error"]
    assert curl(f"{server.http}/v2/health/ready")[0] == 503
    states = {(row["name"], row["version"]): row["state"] for row in curl(f"{server.http}/v2/repository/index", {})[1]}
    assert states == {("m", "1"): "READY", ("m", "2"): "READY", ("fixed", "1"): "UNAVAILABLE"}
    _, client = triton(server, "http")
    assert not client.is_model_ready("fixed")
    client.load_model("fixed")
    assert client.is_model_ready("fixed")
    client.close()
    module, client = triton(server, "grpc")
    client.unload_model("fixed")
    assert not client.is_model_ready("fixed")
    assert not client.is_server_ready()
    with pytest.raises(module.InferenceServerException, match=r"UNAVAILABLE.*model 'fixed' is not loaded"):
        client.infer("fixed", [module.InferInput("x", [2, 16], "FP32")])
    client.load_model("fixed")
    assert client.is_server_ready()
    client.close()
    assert curl(f"{server.http}/v2/repository/models/nowhere/load", method="POST")[0] == 404
