"""One line on stderr when compiling keeps somebody waiting for more than a second, or was in vain."""

import os
import sys
import threading
from typing import Any

from numba.core import event

PATIENCE = 1.0
"""Seconds of compiling before anything is said."""

TEXT = (
    "c4b: compiling for the first use on this machine, about half a minute; later starts are immediate. "
    "Once for an image or an install: `c4b compile`. Silence this line: C4B_QUIET=1."
)

NOT_KEPT = (
    "c4b: what was compiled cannot be kept in {folder} ({error}): the next start compiles again. "
    "Choose another folder: NUMBA_CACHE_DIR. Silence this line: C4B_QUIET=1."
)


class Notice(event.Listener):
    """Says ``TEXT`` once per process, when a kernel of this package is still compiling after a while."""

    def __init__(self) -> None:
        self.depth = 0
        self.timer: threading.Timer | None = None
        self.silent = bool(os.environ.get("C4B_QUIET"))
        self.says_what_is_not_kept = not self.silent

    def on_start(self, event: Any) -> None:
        self.depth += 1
        if self.depth == 1 and not self.silent and _is_ours(event):
            self.timer = threading.Timer(PATIENCE, self.say)
            self.timer.daemon = True
            self.timer.start()

    def on_end(self, event: Any) -> None:
        self.depth -= 1
        if self.depth == 0 and self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def say(self) -> None:
        if not self.silent:
            self.silent = True
            print(TEXT, file=sys.stderr, flush=True)

    def not_kept(self, folder: str, error: OSError) -> None:
        """What was compiled could not be written."""
        if self.says_what_is_not_kept:
            self.says_what_is_not_kept = False
            print(NOT_KEPT.format(folder=folder, error=error), file=sys.stderr, flush=True)


def _is_ours(compiled: Any) -> bool:
    return str(compiled.data["dispatcher"].py_func.__module__).split(".")[0] == "c4b"


NOTICE = Notice()


def listen() -> None:
    """Hear from now on when a kernel compiles."""
    event.register("numba:compile", NOTICE)
