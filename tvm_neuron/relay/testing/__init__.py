"""`relay.testing`: networks with random weights, and what Relay's own tests call."""

from typing import Any

import tvm

from tvm_neuron.relay.ir.expr import Function
from tvm_neuron.relay.modules import module_of
from tvm_neuron.relay.testing import (
    dcgan,
    densenet,
    dqn,
    inception_v3,
    layers,
    lstm,
    mlp,
    mobilenet,
    resnet,
    resnet_3d,
    squeezenet,
    vgg,
    yolo_detection,
)
from tvm_neuron.relay.testing.init import create_workload
from tvm_neuron.relay.transform import InferType

__all__ = [
    "create_workload", "dcgan", "densenet", "dqn", "inception_v3", "layers", "lstm", "mlp", "mobilenet", "resnet",
    "resnet_3d", "run_infer_type", "run_opt_pass", "squeezenet", "vgg", "yolo_detection",
]  # fmt: skip


def run_opt_pass(expr: Any, opt_pass: tvm.transform.Pass, import_prelude: bool = False) -> Any:
    """`expr` after InferType and the pass; a function if it was one."""
    del import_prelude  # there are no data types of a user's own here
    mod = opt_pass(InferType()(module_of(expr)))
    return mod["main"] if isinstance(expr, Function) else mod["main"].body


def run_infer_type(expr: Any) -> Any:
    """`expr` with the types of all that it is made of."""
    return run_opt_pass(expr, InferType())
