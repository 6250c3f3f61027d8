"""ScopeBuilder: expressions with `let` and `if` written line by line."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tvm_neuron.errors import ModelError
from tvm_neuron.relay.ir.expr import If, Let, Var, as_expr


class ScopeBuilder:
    """Collects bindings, choices and a result; `get()` gives the expression."""

    def __init__(self) -> None:
        self._scopes: list[list[tuple[Var, Any]]] = [[]]
        self._results: list[Any] = [None]
        self._choice: tuple[Any, Any] | None = None

    def let(self, var: Var | str, value: Any) -> Var:
        """Bind a value to a variable, made if a name is given; gives the variable."""
        bound = Var(var) if isinstance(var, str) else var
        self._scopes[-1].append((bound, as_expr(value)))
        return bound

    @contextmanager
    def if_scope(self, cond: Any) -> Iterator[None]:
        """The branch that is taken if `cond` holds; `ret` in it gives its value."""
        yield from self._scope()
        self._choice = (as_expr(cond), self._last)

    @contextmanager
    def else_scope(self) -> Iterator[None]:
        """The branch that is taken if it does not; the choice is the value of the scope around it.

        Raises ModelError: there is no branch before it.
        """
        if self._choice is None:
            raise ModelError("ScopeBuilder: else_scope needs an if_scope before it")
        (cond, taken), self._choice = self._choice, None
        yield from self._scope()
        self._results[-1] = If(cond, taken, self._last)

    def _scope(self) -> Iterator[None]:
        self._scopes.append([])
        self._results.append(None)
        yield
        self._last = self._closed()

    def ret(self, value: Any) -> None:
        """The value of this scope.

        Raises ModelError: it has one already.
        """
        if self._results[-1] is not None:
            raise ModelError("ScopeBuilder: this scope has a value already")
        self._results[-1] = as_expr(value)

    def get(self) -> Any:
        """The expression.

        Raises ModelError: there is no value.
        """
        return self._wrapped(self._scopes[-1], self._results[-1])

    def _closed(self) -> Any:
        return self._wrapped(self._scopes.pop(), self._results.pop())

    @staticmethod
    def _wrapped(bindings: list[tuple[Var, Any]], result: Any) -> Any:
        if result is None:
            raise ModelError("ScopeBuilder: a scope has no value; give it one by ret(...)")
        for var, value in reversed(bindings):
            result = Let(var, value, result)
        return result
