"""Requests as strangers send them: whatever it is, arrays or one sentence. `test_alone.py` runs this."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tvm_neuron.errors import InputError

pytestmark = pytest.mark.serve
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "a"]), inner, max_size=2),
    max_leaves=6,
)
DATATYPES = st.sampled_from(["FP32", "fp32", "INT8", "UINT64", "BOOL", "FP16", "BYTES", "FP8", ""])
PARAMETERS = st.dictionaries(st.sampled_from(["binary_data_size", "binary_data"]), VALUES | st.integers(0, 9))
TENSORS = st.fixed_dictionaries({}, optional={
    "name": st.just("x") | VALUES, "shape": st.lists(st.integers(-1, 3), max_size=3) | VALUES,
    "datatype": DATATYPES | VALUES, "data": st.lists(st.integers(-300, 300), max_size=4) | VALUES,
    "parameters": PARAMETERS | VALUES,
})  # fmt: skip
BODIES = st.fixed_dictionaries({}, optional={
    "id": VALUES, "inputs": st.lists(TENSORS, max_size=2) | VALUES, "outputs": st.lists(TENSORS, max_size=2) | VALUES,
    "parameters": PARAMETERS | VALUES,
})  # fmt: skip
_NUMBERS: dict[str, Any] = {"B": lambda n: n > 60, "U": lambda n: n, "I": lambda n: n - 64, "F": lambda n: n / 4 - 9}


@settings(max_examples=300)
@given(BODIES | VALUES, st.binary(max_size=16))
def test_any_body_is_arrays_or_an_input_error(body: Any, behind: bytes) -> None:
    from tvm_neuron.serve.protocol import inputs_of, read_rest

    text = json.dumps(body).encode()
    try:
        request = read_rest(text + behind, len(text), "m")
        found = inputs_of(request)
    except InputError:
        return
    assert isinstance(request.id or "", str)
    for one in (request.use_binary_outputs, *(one.binary_data for one in request.request_outputs or ())):
        assert one in (False, True, None) or one  # it can be asked for
    assert {name: list(array.shape) for name, array in found.items()} == {i["name"]: i["shape"] for i in body["inputs"]}


@given(st.sampled_from(["INT8", "UINT16", "INT64", "FP16", "FP32", "FP64", "BOOL"]), st.data())
def test_arrays_arrive_as_they_were_sent(datatype: str, data: Any) -> None:
    """As JSON and as bytes, beside each other in one request."""
    from kserve.utils.numpy_codec import to_np_dtype

    from tvm_neuron.serve.protocol import inputs_of, read_rest

    shape = data.draw(st.lists(st.integers(0, 3), max_size=3))
    numbers = data.draw(st.lists(st.integers(0, 127), min_size=int(np.prod(shape)), max_size=int(np.prod(shape))))
    array = np.array([_NUMBERS[datatype[0]](number) for number in numbers], to_np_dtype(datatype)).reshape(shape)
    behind = {"shape": shape, "datatype": datatype, "parameters": {"binary_data_size": array.nbytes}}
    inputs = [{"name": "a", **behind}, {"name": "b", **behind}]
    if datatype != "FP16":  # which the protocol has no form of in JSON
        inputs.append({"name": "c", "shape": shape, "datatype": datatype, "data": array.tolist()})
    text = json.dumps({"inputs": inputs}).encode()
    other = array[::-1] if array.ndim else array
    found = inputs_of(read_rest(text + array.tobytes() + other.tobytes(), len(text), "m"))
    for name, expected in {"a": array, "b": other, "c": array}.items():
        if name in found:
            assert found[name].dtype == array.dtype
            np.testing.assert_array_equal(found[name], expected)
