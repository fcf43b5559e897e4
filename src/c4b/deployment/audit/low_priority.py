"""Run audits at low priority, so that they do not delay decisions on the same machine."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

NICENESS = 15
"""Added to that of the process that starts an audit. Where an audit and a worker compete for one core of
Linux, the audit gets a thirtieth of it; so it also ends on a machine that is never idle, which it would
not with the policy ``SCHED_IDLE``. Reads from disks follow."""
_THREADS = Path("/proc/self/task")


def give_way() -> None:
    """Let this process go on when others wait for something else.

    Linux has a niceness for each thread, and libraries start some when they are imported.
    """
    with suppress(OSError):
        niceness = os.nice(NICENESS)
        for thread in _THREADS.iterdir():
            os.setpriority(os.PRIO_PROCESS, int(thread.name), niceness)
