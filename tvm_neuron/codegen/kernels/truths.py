"""simplify_truths: conditions without steps that don't change them, such as comparing a comparison with zero."""

from dataclasses import replace

from tvm_neuron.schedule.expr import Apply, Expr, Num, rewrite_operations
from tvm_neuron.schedule.kernel import Kernel

_TRUTHS = frozenset(("is_equal", "not_equal", "is_gt", "is_ge", "is_lt", "is_le", "and", "or", "not"))


def simplify_truths(kernel: Kernel) -> Kernel:
    """The kernel; what comes of its comparisons is 0 or 1, and is used as it is."""
    return replace(kernel, expr=rewrite_operations(kernel.expr, _simplified))


def _simplified(expr: Apply) -> Expr:
    match expr:
        case Apply("is_lt", (Num(0), truth)) | Apply("is_gt" | "not_equal", (truth, Num(0))) if _is_truth(truth):
            return truth
        case Apply("select", (Apply("not", (condition,)), on_true, on_false)):
            return Apply("select", (condition, on_false, on_true))
    return expr


def _is_truth(expr: Expr) -> bool:
    return isinstance(expr, Apply) and expr.op in _TRUTHS
