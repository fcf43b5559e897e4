"""Audits of the service run in a process of their own, with low priority.

An audit computes for minutes or hours. In a thread of a worker it would take its share of the processor,
and of the interpreter, from decisions.

The process is told by its standard input what to audit, and writes the report, or the error, as JSON to
its standard output. The input stays open. It ends with the worker, however that ends, and then the
process ends, too.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any

from c4b import errors
from c4b.deployment import Deployment
from c4b.deployment.audit.audit_report import Report
from c4b.deployment.audit.low_priority import give_way
from c4b.deployment.questions import witness


class AuditProcess:
    """The audits of one worker, one at a time."""

    def __init__(self, store: str, witness: str | None) -> None:
        self._store, self._witness = store, witness
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False

    def run(self, deployment: Deployment, sample: int) -> Report:
        """Audit a deployment that is open here. May take long.

        A policy or a set that only this program has registered is not known to another process. Such a
        deployment is audited here.
        """
        path = self._witness
        if path is not None and not (
            Path(path).exists() and witness.read("witness", path, deployment.name)
        ):
            path = None  # nothing was witnessed yet
        try:
            return self._in_process(deployment.name, sample, path)
        except errors.SchemaVersion:
            return deployment.audit(sample, witness=path)

    def _in_process(self, name: str, sample: int, path: str | None) -> Report:
        command = [sys.executable, "-m", __name__]
        job = {"store": self._store, "name": name, "sample": sample, "witness": path}
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            self._process = process
            if self._stopped:
                process.kill()
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                process.stdin.write(json.dumps(job).encode() + b"\n")
                process.stdin.flush()
            except BrokenPipeError:
                pass  # it ended already; there is no answer, then
            answer = process.stdout.read()
            process.wait()
        if not answer:
            raise errors.StoreUnavailable("the audit's process ended without a report; start it again")
        return _report(json.loads(answer))

    def close(self) -> None:
        """End the audit that is running. Later ones end at once."""
        self._stopped = True
        if self._process is not None:
            self._process.kill()


def _report(answer: dict[str, Any]) -> Report:
    """The report that the process sent; raises the error that it sent."""
    if "report" in answer:
        return Report(**answer["report"])
    kind = getattr(errors, answer["error"], None)
    if isinstance(kind, type) and issubclass(kind, errors.DeploymentError):
        raise kind(answer["message"])
    raise errors.StoreUnavailable(f"the audit failed ({answer['error']}: {answer['message']})")


def main() -> None:
    """The process."""
    give_way()
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what somebody's gate prints goes to the log
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the worker decides when to end
    job = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_worker, name="c4b-worker", daemon=True).start()
    answer: dict[str, Any]
    try:
        with Deployment.open(job["store"], job["name"]) as deployment:
            answer = {"report": asdict(deployment.audit(job["sample"], witness=job["witness"]))}
    except errors.C4BError as error:
        answer = {"error": type(error).__name__, "message": str(error)}
    with answers:
        answers.write(json.dumps(answer))


def _end_with_worker() -> None:
    while os.read(sys.stdin.fileno(), 1):
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
