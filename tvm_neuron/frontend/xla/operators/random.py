"""Random numbers: of a distribution, drawn in each run, and of a state, which are those of XLA."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx

from tvm_neuron.frontend.drawing import DRAW_DOMAIN, NORMAL, UNIFORM
from tvm_neuron.frontend.refused import RefusedError
from tvm_neuron.frontend.xla.region import Converter
from tvm_neuron.frontend.xla.scope import Scope, dtype_of, elements, shape_of

_ROUNDS, _FACTORS, _STEPS = 10, ((0, 0xD2511F53), (2, 0xCD9E8D57)), (0x9E3779B9, 0xBB67AE85)  # Philox's own


def _rng(scope: Scope, op: Any, _: Mapping[str, Converter]) -> None:
    """`a + (b - a) u`, u in [0, 1) uniform or else normal: then a is the mean, and b the deviation."""
    low, high, _shape = op.operands
    (result,) = op.results
    is_uniform = UNIFORM.upper() in str(op.attributes["rng_distribution"])
    graph, wanted = scope.graph, dtype_of(result)
    is_whole, is_double = wanted.kind in "iub", wanted.kind in "iub" or wanted.itemsize == 8
    exact = onnx.TensorProto.DOUBLE if is_double else onnx.TensorProto.FLOAT
    ends = [graph.add("Cast", scope.loose(value), to=exact) for value in (low, high)]
    kind, shape = UNIFORM if is_uniform else NORMAL, [*shape_of(result)]
    drawn = graph.add(kind, domain=DRAW_DOMAIN, shape=shape or None, is_double=int(is_double))
    width = graph.add("Sub", ends[1], ends[0]) if is_uniform else ends[1]
    found = graph.add("Add", graph.add("Mul", drawn, width), ends[0])
    if is_whole:
        found = graph.add("Floor", found)
    scope.set(result, graph.add("Cast", found, to=onnx.helper.np_dtype_to_tensor_dtype(wanted)))


def _bits(scope: Scope, op: Any, _: Mapping[str, Converter]) -> None:
    """XLA's own of a CPU: Philox 4x32 of ten rounds, four numbers for each count from the state's second word on.

    The state's first word is the key, and the high half of the count.
    """
    (state,), (after, result) = op.operands, op.results
    algorithm = str(op.attributes["rng_algorithm"]).split()[-1].rstrip(">")
    if algorithm == "THREE_FRY" or shape_of(state) != (2,) or dtype_of(result).name != "uint32":
        raise RefusedError(
            f"its algorithm is {algorithm}, its state {state.type} and its result {result.type}; known are Philox (or "
            "DEFAULT) with a state of two numbers for a result of ui32"
        )
    graph, sizes = scope.graph, [*shape_of(result)]
    words = graph.constant(np.uint64(2**32 - 1)), graph.constant(np.uint64(32))

    def halves(name: str) -> list[str]:
        return [graph.add("BitwiseAnd", name, words[0]), graph.add("BitShift", name, words[1], direction="RIGHT")]

    high, low = graph.add("Split", scope.full(state), axis=0, num_outputs=2, results=2)
    fours = -(-elements(sizes) // 4)
    counts = graph.add("Add", low, graph.constant(np.arange(fours, dtype=np.uint64)))
    is_over = graph.add("BitwiseAnd", low, graph.add("BitwiseNot", counts))  # TVM takes low + n < low for never true
    carry = graph.add("BitShift", is_over, graph.constant(np.uint64(63)), direction="RIGHT")
    x, key = [*halves(counts), *halves(graph.add("Add", high, carry))], halves(high)
    for _round in range(_ROUNDS):
        (first, second), (third, fourth) = (
            halves(graph.add("Mul", x[place], graph.constant(np.uint64(factor)))) for place, factor in _FACTORS
        )
        x = [
            graph.add("BitwiseXor", graph.add("BitwiseXor", fourth, x[1]), key[0]), third,
            graph.add("BitwiseXor", graph.add("BitwiseXor", second, x[3]), key[1]), first,
        ]  # fmt: skip
        steps = [graph.constant(np.uint64(step)) for step in _STEPS]
        raised = [graph.add("Add", *both) for both in zip(key, steps, strict=True)]
        key = [graph.add("BitwiseAnd", half, words[0]) for half in raised]
    columns = [scope.reshaped(name, [fours, 1]) for name in x]
    found = graph.add("Cast", graph.add("Concat", *columns, axis=1), to=onnx.TensorProto.UINT32)
    found = graph.add("Slice", scope.reshaped(found, [fours * 4]), graph.ints([0]), graph.ints([elements(sizes)]))
    scope.set(result, scope.reshaped(found, sizes))
    moved = graph.add("Add", low, graph.constant([fours], np.uint64))
    scope.set(after, graph.add("Concat", high, moved, axis=0))


CONVERTERS: dict[str, Converter] = {"stablehlo.rng": _rng, "stablehlo.rng_bit_generator": _bits}
