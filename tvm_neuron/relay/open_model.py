"""open_model: a model that is imported when a call tells its sizes, and the values that sizes are made of."""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import tvm
from tvm.ir import BaseFunc
from tvm_ffi.dataclasses import field, py_class

from tvm_neuron.frontend.onnx.stages import Stages
from tvm_neuron.relay.ir.expr import Var
from tvm_neuron.relay.ir.ty import type_text


class Import(Protocol):
    """What is left to do of an import."""

    def module(self, shapes: Mapping[str, tuple[int, ...]], values: Mapping[str, Any]) -> tvm.IRModule | Stages:
        """The module of Relax, its weights bound, for inputs of these shapes and those that have to be known.

        Stages, if only a run tells all of its shapes.

        Raises NeedsShapeError, NeedsValueError: another shape or value has to be given; ModelError.
        """


@py_class("relay.OpenModel")
class OpenModel(BaseFunc):
    """`main` of such a module. `params` are the model's inputs, with `Any` for open sizes; `text` is what it does."""

    params: list[Any] = field(structural_eq="def")
    text: str
    rest: Any = field(structural_eq="ignore")

    def __init__(self, params: Iterable[Var], text: str, rest: Import) -> None:
        self.__ffi_init__(tvm.ir.make_node("ir.DictAttrs"), list(params), text, rest)

    def closed(self, shapes: Mapping[str, tuple[int, ...]], values: Mapping[str, Any]) -> tvm.IRModule | Stages:
        """`Import.module`; what it raises for no shapes and values says what is open."""
        rest: Import = self.rest
        return rest.module(shapes, values)

    def astext(self) -> str:
        """Its inputs, and what it does."""
        params = ", ".join(f"%{param.name_hint}: {type_text(param.type_annotation)}" for param in self.params)
        return f"({params}) {{\n{self.text}\n}}"
