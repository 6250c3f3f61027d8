"""Relay's interface, as TVM 0.18 had it, over Relax: the language, the importers, `build` and what runs its results.

Importing this module also makes `from tvm import relay` and `from tvm.contrib import graph_executor` resolve here,
and brings back `tvm.nd` and `tvm.device("neuron")`, so that a Relay-era script runs with this one import added.
"""

import sys

from tvm.ir import GlobalVar, SequentialSpan, SourceName, Span
from tvm.runtime import load_param_dict, save_param_dict

from tvm_neuron.relay import (
    analysis,
    backend,
    build_module,
    compatibility,
    dataflow_pattern,
    elsewhere,
    expr,
    expr_functor,
    frontend,
    graph_executor,
    modules,
    op,
    pass_config,
    testing,
    transform,
    vm,
)
from tvm_neuron.relay.build_module import build, build_buckets, build_config, optimize
from tvm_neuron.relay.executor import create_executor
from tvm_neuron.relay.factory import ExecutorFactory
from tvm_neuron.relay.ir import ty
from tvm_neuron.relay.ir.expr import (
    Call,
    Constant,
    Function,
    If,
    Let,
    RelayExpr,
    Tuple,
    TupleGetItem,
    TupleWrapper,
    Var,
    const,
    var,
)
from tvm_neuron.relay.ir.functor import ExprFunctor, ExprMutator, ExprVisitor, bind
from tvm_neuron.relay.ir.ty import AnyDim as Any
from tvm_neuron.relay.ir.ty import FuncType, IncompleteType, TensorType, TupleType, scalar_type
from tvm_neuron.relay.op import annotation, image, nn, vision
from tvm_neuron.relay.op import contrib as _op_contrib
from tvm_neuron.relay.op import quantised as qnn
from tvm_neuron.relay.op.contrib import neuron as _neuron  # noqa: F401 - registers its patterns
from tvm_neuron.relay.params import bind_params_by_name
from tvm_neuron.relay.scope_builder import ScopeBuilder
from tvm_neuron.relay.text import astext

__all__ = [
    "Any", "Call", "Constant", "ExecutorFactory", "Expr", "ExprFunctor", "ExprMutator", "ExprVisitor", "FuncType",
    "Function", "GlobalVar", "If", "IncompleteType", "Let", "ScopeBuilder", "SequentialSpan", "SourceName", "Span",
    "TensorType", "Tuple", "TupleGetItem", "TupleType", "TupleWrapper", "Var", "analysis", "annotation", "astext",
    "backend", "bind", "bind_params_by_name", "build", "build_buckets", "build_config", "build_module", "const",
    "create_executor", "dataflow_pattern", "expr", "expr_functor", "frontend", "graph_executor", "image",
    "load_param_dict", "nn", "op", "optimize", "qnn", "save_param_dict", "scalar_type", "testing", "transform", "ty",
    "var", "vision", "vm",
]  # fmt: skip

Expr = RelayExpr

globals().update(op.namespace())
build_module.create_executor = create_executor  # type: ignore[attr-defined]  # which is made of `build`

vars(qnn)["transform"] = transform

compatibility.install()
modules.install()
pass_config.install()
elsewhere.install(
    {
        "relay": sys.modules[__name__], "relay.op": op, "relay.nn": nn, "relay.vision": vision,
        "relay.op.contrib": _op_contrib, "relay.transform": transform, "relay.analysis": analysis,
        "relay.frontend": frontend, "relay.testing": testing,
        "relay.expr": expr, "relay.expr_functor": expr_functor, "relay.ty": ty,
        "relay.vm": vm, "relay.qnn": qnn, "relay.qnn.op": qnn.op, "relay.backend": backend,
        "relay.build_module": build_module,
    }
)  # fmt: skip
