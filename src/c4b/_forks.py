"""What an object does in a child process, right after a fork.

Only the thread that forked exists there. A lock that another one held would stay locked for ever, and
connections belong to the parent.
"""

import os
from collections.abc import Callable
from typing import TypeVar
from weakref import WeakSet

T = TypeVar("T")


def after_fork(act: Callable[[T], None]) -> WeakSet[T]:
    """A set, empty at first; in a child process ``act`` is called with everything that is in it."""
    members: WeakSet[T] = WeakSet()

    def act_on_all() -> None:
        for member in list(members):
            act(member)

    if hasattr(os, "register_at_fork"):  # where there are forks
        os.register_at_fork(after_in_child=act_on_all)
    return members
