"""`compile`: a function of JAX in, a library out: the leaves of its arguments in, those of its result out."""

from collections.abc import Callable
from typing import Any

from tvm_neuron.codegen.options import BuildOptions
from tvm_neuron.compile_model import compile_model
from tvm_neuron.frontend.jax import lowered
from tvm_neuron.relay.build_module import TargetLike
from tvm_neuron.relay.factory import ExecutorFactory


def compile_function(
    function: Callable[..., Any], *args: Any, target: TargetLike | None = "neuron", options: BuildOptions | None = None
) -> ExecutorFactory:
    """Compile what `function` computes of arguments like these: arrays, or jax.ShapeDtypeStruct, in any tree.

    Inputs of the library are the leaves of the arguments in JAX's order, with their names (`params_w` of
    `params["w"]`); arrays that the function finds around it (weights in a closure) are constants of the library.

    Raises OptionError: jax is not installed. Raises ModelError: it can't be lowered, or an operator of its StableHLO
    not be imported. Raises what `relay.build` raises.
    """
    return compile_model(lowered(function, args), target=target, options=options)
