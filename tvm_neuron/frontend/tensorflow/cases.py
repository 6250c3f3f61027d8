"""without_cases: `tf.switch_case` as branches of two, which tf2onnx writes as ONNX's If; it does not know Case."""

from collections.abc import Iterator
from typing import Any

_CASES, _INT32 = ("Case", "StatelessCase"), 3  # DT_INT32


def without_cases(graph: Any) -> Any:
    """The GraphDef, or a copy where each Case is a StatelessIf: the first branch, else one of the others.

    Others are a function of the same tensors and the index, which chooses among them in the same way; an index that is
    none chooses the last, as in TensorFlow.
    """
    if not any(node.op in _CASES for node in _nodes(graph)):
        return graph
    found = type(graph)()
    found.CopyFrom(graph)
    for nodes, in_function in [(found.node, False), *((each.node_def, True) for each in found.library.function)]:
        for node in [node for node in nodes if node.op in _CASES]:
            _replace(found, nodes, node, in_function)
    return found


def _nodes(graph: Any) -> Iterator[Any]:
    yield from graph.node
    for function in graph.library.function:
        yield from function.node_def


def _replace(graph: Any, nodes: Any, case: Any, in_function: bool) -> None:
    names = [branch.name for branch in case.attr["branches"].list.func]
    if len(names) == 1:
        names *= 2
    branches = [_with_index(graph, name) for name in names]
    index, *rest = case.input
    data = [name for name in rest if not name.startswith("^")]
    control = rest[len(data) :]
    first, others = branches[0], branches[-1]
    for number in range(len(branches) - 2, 0, -1):
        others = _choice(graph, case, number, branches[number], others)
    _choose(nodes, case, index, [*data, index], (0, first, others), in_function)
    case.input.extend(control)


def _with_index(graph: Any, name: str) -> Any:
    """A branch that takes the index behind its tensors, and does not read it."""
    (source,) = (each for each in graph.library.function if each.signature.name == name)
    found = graph.library.function.add()
    found.CopyFrom(source)
    found.signature.name = _free(graph, f"{name}_with_index")
    found.signature.input_arg.add(name=_free_argument(source), type=_INT32)
    return found


def _choice(graph: Any, case: Any, number: int, branch: Any, others: Any) -> Any:
    """The function that is this branch if the index is this number, and else the others."""
    found = graph.library.function.add()
    found.signature.CopyFrom(branch.signature)
    found.signature.name = _free(graph, f"{branch.signature.name}_or_others")
    inner = found.node_def.add()
    inner.CopyFrom(case)
    inner.name = "choice"
    arguments = [each.name for each in found.signature.input_arg]
    _choose(found.node_def, inner, arguments[-1], arguments, (number, branch, others), True)
    for place, output in enumerate(found.signature.output_arg):
        found.ret[output.name] = f"choice:output:{place}"
    return found


def _choose(
    nodes: Any, case: Any, index: str, data: list[str], choice: tuple[int, Any, Any], in_function: bool
) -> None:
    """Makes a StatelessIf of the node."""
    number, then, others = choice
    constant = nodes.add(name=f"{case.name}/number", op="Const")
    constant.attr["dtype"].type = _INT32
    constant.attr["value"].tensor.dtype = _INT32
    constant.attr["value"].tensor.tensor_shape.SetInParent()
    constant.attr["value"].tensor.int_val.append(number)
    equal = nodes.add(name=f"{case.name}/is_it", op="Equal")
    equal.attr["T"].type = _INT32
    equal.input.extend([index, f"{constant.name}:output:0" if in_function else constant.name])
    case.op = "StatelessIf" if case.op == "StatelessCase" else "If"
    del case.input[:]
    case.input.extend([f"{equal.name}:z:0" if in_function else equal.name, *data])
    for name in ("branches", "_lower_using_switch_merge"):
        case.attr.pop(name, None)
    case.attr["Tcond"].type = 10  # DT_BOOL
    case.attr["Tin"].list.type.append(_INT32)
    case.attr["then_branch"].func.name = then.signature.name
    case.attr["else_branch"].func.name = others.signature.name


def _free(graph: Any, name: str) -> str:
    known = {each.signature.name for each in graph.library.function}
    while name in known:
        name += "_"
    return name


def _free_argument(function: Any) -> str:
    known = {each.name for each in (*function.signature.input_arg, *function.node_def)}
    name = "index"
    while name in known:
        name += "_"
    return name
