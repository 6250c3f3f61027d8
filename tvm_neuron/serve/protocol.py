"""The protocol's messages, by the KServe SDK: requests into arrays, arrays into answers; and the status of an error."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import orjson
from kserve.errors import InferenceError, InvalidInput
from kserve.protocol.infer_type import InferInput, InferOutput, InferRequest, InferResponse, RequestedOutput
from kserve.utils.numpy_codec import from_np_dtype, to_np_dtype
from numpy.typing import NDArray
from starlette.requests import ClientDisconnect

from tvm_neuron.errors import (
    InferTimeoutError,
    InputError,
    NotServedError,
    QueueFullError,
    RangeError,
    ServiceError,
    TooLargeError,
)
from tvm_neuron.neff import TensorInfo
from tvm_neuron.serve.batcher import Arrays
from tvm_neuron.serve.repository import Served, as_arrays

_FORM = (
    '{"inputs": [{"name": "x", "shape": [1, 3], "datatype": "FP32", "data": [1, 2, 3]}]}, or data behind the JSON as '
    "binary_data_size says"
)
_KINDS: Mapping[str, str] = {
    "BOOL": "b", **{f"{s}INT{bits}": "iu" for s in ("", "U") for bits in (8, 16, 32, 64)},
    "FP16": "iuf", "FP32": "iuf", "FP64": "iuf",
}  # fmt: skip
"""What NumPy may call the numbers of JSON for each datatype."""
_ASK_BINARY = 'ask for it as bytes, {"outputs": [{"name": ..., "parameters": {"binary_data": true}}]}'
_MOST_SHOWN = 40
STATUSES: tuple[tuple[type[Exception], int, str], ...] = (
    (NotServedError, 404, "NOT_FOUND"),
    (QueueFullError, 429, "UNAVAILABLE"),
    (InferTimeoutError, 504, "DEADLINE_EXCEEDED"),
    (ServiceError, 503, "UNAVAILABLE"),
    (TooLargeError, 413, "RESOURCE_EXHAUSTED"),
    (InputError, 400, "INVALID_ARGUMENT"),
    (RangeError, 400, "INVALID_ARGUMENT"),
    (ClientDisconnect, 499, "CANCELLED"),  # which nobody reads
)
"""Of REST and gRPC, for each kind of error; the first that fits."""


def status_of(error: BaseException) -> tuple[int, str]:
    """The status of REST and the name of that of gRPC; of what is a defect of ours, 500 and INTERNAL."""
    return next(((code, name) for kind, code, name in STATUSES if isinstance(error, kind)), (500, "INTERNAL"))


def read_rest(body: bytes, json_bytes: int, name: str) -> InferRequest:
    """A request over REST. What lies behind the JSON stays bytes: the SDK's own reader makes a list of each number.

    Raises:
        InputError: it is none.
    """
    try:
        told = orjson.loads(body[:json_bytes])
        inputs, begin = [], json_bytes
        for one in told["inputs"]:
            given = InferInput(one["name"], one["shape"], one["datatype"], parameters=one.get("parameters"))
            if one.get("data") is not None:
                given.data = one["data"]
            else:
                end = begin + one["parameters"]["binary_data_size"]
                given.set_data_from_numpy(_from_bytes(given, body[begin:end]))
                begin = end
            inputs.append(given)
        asked = [RequestedOutput(one["name"], one.get("parameters")) for one in told.get("outputs") or ()]
        parameters = told.get("parameters")
        _check_forms([told.get("id") or "", *(one.name for one in (*inputs, *asked))], str, "a name or id is no text")
        tables = [parameters or {}, *(one.parameters or {} for one in (*inputs, *asked))]
        _check_forms(tables, dict, "parameters are no object")
        return InferRequest(name, inputs, told.get("id"), parameters=parameters, request_outputs=asked)
    except (InvalidInput, InferenceError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"the request is not of the form {_FORM}: {_told(error)}") from error


def inputs_of(request: InferRequest) -> Arrays:
    """The arrays of a request.

    Raises:
        InputError: data don't fit their shape or datatype, or a name is there twice.
    """
    found = []
    for given in request.inputs:
        try:
            _check_numbers(given)
            array = given.as_numpy()
            if array.shape != tuple(given.shape):  # -1 is any for NumPy
                raise ValueError(f"they are of the shape {list(array.shape)}")
        except (InvalidInput, TypeError, ValueError, OverflowError) as error:
            raise InputError(
                f"input '{given.name}': its data are not of the shape {given.shape} and datatype "
                f"{given.datatype}: {_told(error)}"
            ) from error
        found.append((given.name, array))
    return as_arrays(found)


def response_of(request: InferRequest, served: Served, outputs: Arrays) -> InferResponse:
    """The answer, of the outputs that are asked for.

    Raises:
        InputError: one that is asked for does not exist, or has no form in JSON.
    """
    asked = request.request_outputs
    for one in asked or ():
        if one.name not in outputs:
            takes = ", ".join(f"'{name}'" for name in outputs)
            raise InputError(f"output '{one.name}' is not one of the model's; it gives {takes}")
    is_binary = {one.name: one.binary_data for one in asked or ()} or dict.fromkeys(outputs, request.use_binary_outputs)
    for name, is_raw in is_binary.items():
        if not (is_raw or request.from_grpc):
            _check_json(name, outputs[name])
    made = [_output(name, outputs[name], request.from_grpc) for name in is_binary]
    return InferResponse(
        response_id=request.id or "", model_name=served.place.name, model_version=served.place.version,
        infer_outputs=made, requested_outputs=asked, use_binary_outputs=request.use_binary_outputs,
    )  # fmt: skip


def rest_answer(response: InferResponse) -> tuple[bytes, int | None]:
    """The body, and how much of it is JSON if there are bytes behind."""
    made, json_bytes = response.to_rest()
    return (made, json_bytes) if isinstance(made, bytes) else (orjson.dumps(made), None)


def datatype(dtype: "np.dtype[Any]") -> str:
    """The protocol's name of a dtype that it has."""
    return str(from_np_dtype(dtype))


def tensors(infos: Sequence[TensorInfo], takes_any_rows: bool) -> list[dict[str, Any]]:
    """Inputs or outputs as the metadata have them; sizes that are open are -1."""
    rows = []
    for info in infos:
        shape = [-1, *info.shape[1:]] if takes_any_rows else list(info.shape)
        rows.append({"name": info.name, "datatype": datatype(np.dtype(info.dtype)), "shape": shape})
    return rows


def _output(name: str, array: Any, is_raw: bool) -> InferOutput:
    made = InferOutput(name, list(array.shape), datatype(array.dtype), data=None if is_raw else array)
    if is_raw:
        made.set_data_from_numpy(array)
    return made


def _check_forms(values: Iterable[object], kind: type, what: str) -> None:
    if not all(isinstance(value, kind) for value in values):
        raise ValueError(what)


def _from_bytes(given: InferInput, data: bytes) -> NDArray[Any]:
    if given.datatype not in _KINDS:
        raise InvalidInput(f"invalid datatype {given.datatype}")
    return np.frombuffer(data, to_np_dtype(given.datatype)).reshape(given.shape)


def _check_numbers(given: InferInput) -> None:
    """NumPy would make 1 of 1.7 for INT32, and NaN of null."""
    if given.datatype not in _KINDS:
        raise InvalidInput(f"invalid datatype {given.datatype}; a model takes {', '.join(_KINDS)}")
    if given.data is None:
        return  # it came as bytes
    data = np.asarray(given.data)
    if data.size and data.dtype.kind not in _KINDS[given.datatype]:
        raise ValueError(f"there is a value that is none, such as {_stranger(data, _KINDS[given.datatype])}")


def _stranger(data: NDArray[Any], kinds: str) -> str:
    wrong = (value for value in data.ravel().tolist() if np.asarray(value).dtype.kind not in kinds)
    return repr(next(wrong, data.ravel().tolist()[0]))[:_MOST_SHOWN]


def _check_json(name: str, array: NDArray[Any]) -> None:
    if array.dtype == np.float16:
        raise InputError(f"output '{name}' is FP16, which the protocol has no form of in JSON: {_ASK_BINARY}")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise InputError(f"output '{name}' has NaN or infinity, which JSON has no form of: {_ASK_BINARY}")


def _told(error: Exception) -> str:
    text = str(error).splitlines()
    return f"{type(error).__name__}{f': {text[0]}' if text else ''}"
