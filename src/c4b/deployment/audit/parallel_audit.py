"""Run one audit on several cores.

Every process follows the whole journal, which is cheap, and recomputes its share of the decisions, which
is not. So each process checks by itself everything that its decisions depend on.
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from c4b.deployment.audit import audit
from c4b.deployment.audit.audit import Progress, Task
from c4b.deployment.audit.audit_report import Report
from c4b.deployment.audit.checks.decision_checks import Share
from c4b.deployment.audit.low_priority import give_way
from c4b.deployment.audit.verified_place import VerifiedPlace
from c4b.errors import C4BError, StoreUnavailable
from c4b.journal.backend_registry import open_backend

PATIENCE = 1.0
"""Seconds between two looks whether the processes are alive."""


def run(
    url: str, name: str, task: Task, jobs: int, progress: Progress | None, resume: Path | None
) -> Report:
    """Audit the deployment ``name`` in ``jobs`` processes of low priority."""
    context = multiprocessing.get_context("spawn")
    messages: Any = context.Queue()
    shares = [task._replace(share=Share(number, jobs)) for number in range(jobs)]
    workers = [
        context.Process(target=_work, args=(url, name, each, messages), daemon=True) for each in shares
    ]
    try:
        with _ctrl_c_withheld():
            for worker in workers:
                worker.start()
        return _collected(messages, workers, progress, resume)
    finally:
        started = [worker for worker in workers if worker.pid is not None]
        for worker in started:
            worker.terminate()
        for worker in started:
            worker.join()


@contextmanager
def _ctrl_c_withheld() -> Iterator[None]:
    """Ctrl-C goes to all processes of a terminal. Those started here inherit that they do not get it: the
    first one ends them."""
    if os.name != "posix":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with_parent() -> None:
    """End this process when the one that started it is gone, even if that was killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _work(url: str, name: str, task: Task, messages: Any) -> None:
    """One process."""
    number = task.share.number
    threading.Thread(target=_end_with_parent, name="c4b-parent", daemon=True).start()
    give_way()
    try:
        backend = open_backend(url)
        try:
            report = audit.run(
                backend,
                name,
                task,
                lambda done, total: messages.put((number, "progress", (done, total))),
                lambda place: messages.put((number, "reached", tuple(place))),
            )
        finally:
            backend.close()
        messages.put((number, "report", asdict(report)))
    except C4BError as error:
        messages.put((number, "error", f"{type(error).__name__}: {error}"))


def _collected(
    messages: Any, workers: list[Any], progress: Progress | None, resume: Path | None
) -> Report:
    done = dict.fromkeys(range(len(workers)), 0)
    places: dict[int, VerifiedPlace] = {}
    reports: list[Report] = []
    while len(reports) < len(workers):
        try:
            number, kind, content = messages.get(timeout=PATIENCE)
        except queue.Empty:
            if any(worker.exitcode not in (None, 0) for worker in workers):
                raise StoreUnavailable("a process of the audit ended; start it again") from None
            continue
        if kind == "progress":
            done[number] = content[0]
            if progress is not None:
                progress(min(done.values()), content[1])
        elif kind == "reached":
            places[number] = VerifiedPlace(*content)
            if resume is not None and len(places) == len(workers):
                min(places.values(), key=lambda place: place.seq).write(resume)
        elif kind == "report":
            reports.append(Report(**content))
        else:
            raise StoreUnavailable(f"a process of the audit failed ({content})")
    return _merged(reports)


def _merged(reports: list[Report]) -> Report:
    """The first finding of any of them; else what all of them did together."""
    found = [report for report in reports if report.finding is not None]
    merged = min(found, key=lambda report: report.entry or 0) if found else reports[0]
    merged.precise = sum(report.precise for report in reports)
    merged.largest_error = max(report.largest_error for report in reports)
    return merged
