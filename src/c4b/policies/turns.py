"""Serialises the calls of several threads on one object.

A decision has several steps, and kernels run without the GIL. Two threads in one ledger could charge it
inconsistently, and an outcome could be learned for the wrong action. So every call waits until the calls
under way have finished.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, NoReturn, ParamSpec, TypeVar
from weakref import WeakSet

from c4b._forks import after_fork
from c4b.errors import C4BError

S = TypeVar("S", bound="TakesTurns")
P = ParamSpec("P")
T = TypeVar("T")


class TakesTurns:
    """Base class of objects whose calls run one at a time.

    A copy (shallow, deep or pickled) shares nothing with the original.
    """

    def __init__(self) -> None:
        self._turn: Any = threading.RLock()
        _all.add(self)

    def __getstate__(self) -> dict[str, Any]:
        with self._turn:
            return copy.deepcopy({name: value for name, value in vars(self).items() if name != "_turn"})

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        TakesTurns.__init__(self)

    def _after_fork(self) -> None:
        if self._turn.acquire(blocking=False):
            self._turn.release()
        else:
            self._turn = _HalfDone()


_all: WeakSet[TakesTurns] = after_fork(lambda each: each._after_fork())


def in_turn(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """Decorate a method so that no other thread is in a call while it runs."""

    @wraps(method)
    def waiting(self: S, /, *arguments: P.args, **named: P.kwargs) -> T:
        with self._turn:
            return method(self, *arguments, **named)

    return waiting


class _HalfDone:
    """The turn of a thread that does not exist in this process."""

    def __enter__(self) -> NoReturn:
        raise C4BError(
            "this process was forked while another thread was in a call of this policy, whose state may "
            "be half changed; load it from a file here, or fork while no call is under way"
        )

    def __exit__(self, *_: object) -> None:
        """Nobody is inside."""
