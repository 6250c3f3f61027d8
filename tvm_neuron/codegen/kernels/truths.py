"""simplify_truths: conditions without steps that don't change them, such as comparing a comparison with zero."""

from dataclasses import replace

from tvm_neuron.codegen.integers import TRUTHS
from tvm_neuron.schedule.expr import Apply, Expr, Load, Num, rewrite_operations
from tvm_neuron.schedule.kernel import Kernel


def simplify_truths(kernel: Kernel) -> Kernel:
    """The kernel; what comes of its comparisons is 0 or 1, and is used as it is."""
    return replace(kernel, expr=rewrite_operations(kernel.expr, _simplified))


def _simplified(expr: Apply) -> Expr:
    match expr:
        case Apply("is_lt", (Num(0), truth)) | Apply("is_gt" | "not_equal", (truth, Num(0))) if _is_truth(truth):
            return truth
        case Apply("select", (Apply("not", (condition,)), on_true, on_false)):
            return Apply("select", (condition, on_false, on_true))
        case Apply("select", (Apply("is_lt", (Num(0), x)), Num(1), below)) if below == _below(x):
            return Apply("subtract", (Apply("is_gt", (x, Num(0.0))), Apply("is_lt", (x, Num(0.0)))))
    return expr


def _below(x: Expr) -> Expr:
    """What is left of TOPI's sign of x, which is 0 for NaN, where x is not above 0."""
    return Apply("select", (Apply("is_lt", (x, Num(0.0))), Num(-1.0), Num(0.0)))


def _is_truth(expr: Expr) -> bool:
    if isinstance(expr, Load):
        return expr.tensor.dtype == "bool"
    return isinstance(expr, Apply) and expr.op in TRUTHS
