"""The door of gRPC: the protocol's service, by the KServe SDK's messages."""

from collections.abc import Awaitable
from typing import Any

import grpc
from google.protobuf.unknown_fields import UnknownFieldSet
from kserve.errors import InvalidInput
from kserve.protocol.grpc import grpc_predict_v2_pb2 as pb
from kserve.protocol.grpc import grpc_predict_v2_pb2_grpc as pb_grpc
from kserve.protocol.infer_type import InferRequest, InferResponse

from tvm_neuron.errors import InputError, NeuronError
from tvm_neuron.runtime import VERSION
from tvm_neuron.serve.calls import Calls
from tvm_neuron.serve.protocol import status_of
from tvm_neuron.serve.rest import EXTENSIONS

_TRITONS_FIELD = 2


class Door(pb_grpc.GRPCInferenceServiceServicer):
    """Answers calls; every error becomes a status of gRPC with its message."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def ServerLive(self, _request: Any, _context: Any) -> Any:  # noqa: N802
        """Whether it runs."""
        return pb.ServerLiveResponse(live=True)

    async def ServerReady(self, _request: Any, _context: Any) -> Any:  # noqa: N802
        """Whether all models are loaded."""
        return pb.ServerReadyResponse(ready=self._calls.repository.is_ready)

    async def ModelReady(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Whether a model takes requests."""

        async def ready() -> Any:
            try:
                self._calls.repository.find(request.name, request.version)
            except NeuronError as error:
                if status_of(error)[1] == "NOT_FOUND":
                    raise
                return pb.ModelReadyResponse(ready=False)
            return pb.ModelReadyResponse(ready=True)

        return await _answered(ready(), context)

    async def ServerMetadata(self, _request: Any, _context: Any) -> Any:  # noqa: N802
        """Name, version, extensions."""
        return pb.ServerMetadataResponse(name="tvm_neuron", version=VERSION, extensions=EXTENSIONS)

    async def ModelMetadata(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Inputs, outputs and versions of a model."""

        async def found() -> Any:
            return pb.ModelMetadataResponse(**self._calls.metadata(request.name, request.version))

        return await _answered(found(), context)

    async def ModelInfer(self, request: Any, context: Any) -> Any:  # noqa: N802
        """One inference."""

        async def read() -> InferRequest:
            return _read(request)

        infer = self._calls.infer(request.model_name, request.model_version, "grpc", read, InferResponse.to_grpc)
        return await _answered(infer, context)

    async def RepositoryModelLoad(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Loads a model."""
        name = _model_name(request)
        await _answered(self._calls.load(name), context)
        return pb.RepositoryModelLoadResponse(model_name=name, isLoaded=True)

    async def RepositoryModelUnload(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Unloads a model."""
        name = _model_name(request)
        await _answered(self._calls.unload(name), context)
        return pb.RepositoryModelUnloadResponse(model_name=name, isUnloaded=True)


async def _answered(work: Awaitable[Any], context: Any) -> Any:
    try:
        return await work
    except NeuronError as error:
        await context.abort(getattr(grpc.StatusCode, status_of(error)[1]), str(error))
    except Exception as error:
        await context.abort(grpc.StatusCode.INTERNAL, f"{type(error).__name__}: this is a defect of the server")


def _model_name(request: Any) -> str:
    """In tritonclient's message it is the second field, behind the name of a repository, which it leaves empty."""
    second = (each.data for each in UnknownFieldSet(request) if each.field_number == _TRITONS_FIELD)
    name = request.model_name or next(second, b"")
    return name.decode(errors="replace") if isinstance(name, bytes) else str(name)


def _read(request: Any) -> InferRequest:
    """A request.

    Raises:
        InputError: it is none.
    """
    raw = len(request.raw_input_contents)
    if raw and (raw != len(request.inputs) or any(each.HasField("contents") for each in request.inputs)):
        raise InputError("raw_input_contents must be there for every input, and contents for none, or the other way")
    try:
        return InferRequest.from_grpc(request)
    except InvalidInput as error:
        raise InputError(f"the request is not of the protocol: {error}") from error
