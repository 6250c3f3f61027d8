"""tag_operators: every call of an imported function gets the ONNX operator that it came from."""

from collections.abc import Mapping, Sequence

from tvm import relax

from tvm_neuron.frontend.origin import Origin, bindings_of, rewrite_bindings, with_origin


def tag_operators(
    main: relax.Function, ends: Mapping[relax.Var, Origin], operators: Sequence[Origin]
) -> relax.Function:
    """All bindings up to the last output of a node (in `ends`) belong to that node."""
    origins: dict[relax.Var, Origin] = {}
    waiting: list[relax.Var] = []
    last = operators[-1] if operators else Origin("main", "main")
    for binding in bindings_of(main):
        waiting.append(binding.var)
        if binding.var in ends:
            last = ends[binding.var]
            origins.update(dict.fromkeys(waiting, last))
            waiting.clear()
    origins.update(dict.fromkeys(waiting, last))

    def rewrite(binding: relax.Binding) -> relax.Binding:
        if isinstance(binding, relax.VarBinding) and isinstance(binding.value, relax.Call | relax.If):
            return relax.VarBinding(binding.var, with_origin(binding.value, origins[binding.var]))
        return binding

    return rewrite_bindings(main, rewrite)
