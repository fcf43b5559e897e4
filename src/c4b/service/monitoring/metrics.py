"""Prometheus metrics: requests, measured in every worker, and deployments, read from the store."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest, values
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from c4b.deployment import Status
from c4b.service.monitoring import request_log

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_METHODS = frozenset(("GET", "POST", "PUT", "HEAD", "OPTIONS", "DELETE"))
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)

_GAUGES = {
    "c4b_bank": ("Certified lower bound of reserve + cumulative contrast.", "bank"),
    "c4b_reserve": ("Reserve R0 given at the start.", "reserve"),
    "c4b_pending_outcomes": ("Decisions whose outcome is not known.", "pending"),
    "c4b_waiting_outcomes": ("Known outcomes that wait for an earlier one.", "waiting"),
    "c4b_oldest_pending_seconds": ("Age of the oldest pending decision.", "oldest_pending_age"),
    "c4b_clock_ahead_seconds": ("How far the journal's times are ahead of the clock.", "clock_ahead"),
    "c4b_radius": ("Radius of the confidence set.", "radius"),
}
_COUNTERS = {
    "c4b_decisions": ("Decisions made.", "rounds"),
    "c4b_fallbacks": ("Decisions that played the baseline.", "fallbacks"),
    "c4b_held_decisions": ("Decisions for the baseline by order; the gate chose a candidate.", "held"),
    "c4b_observations": ("Rewards absorbed, history included.", "observations"),
    "c4b_journal_entries": ("Entries in the journal.", "seq"),
}


_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""The variable that names the folder in which workers share their counts."""
_SHARED_BYTES = 2**20
"""Of each file in it. Every method on every route takes 0.4 MB."""
_HEADER = 8
"""Bytes of a file before the first count."""


def _reserve_shared_files() -> None:
    """Have room for this worker's counts now. They are written to memory that stands for files with
    holes, and where the disk is full when a hole is filled, the system kills the process.

    Without room, or without the folder, the worker serves and is not counted.
    """
    folder = os.environ.get(_FOLDER)
    if folder is None:
        return
    files = [Path(folder, f"{kind}_{os.getpid()}.db") for kind in ("counter", "histogram")]
    try:
        _give_back_room(Path(folder))
        for path in files:
            with open(path, "ab") as file:  # a worker that had this number before stays counted
                file.write(bytes(max(0, _SHARED_BYTES - file.tell())))
    except OSError as error:
        request_log.logger.error(
            "requests of this worker are not counted in /metrics: no room in %s (%s)", folder, error
        )
        for path in files:
            path.unlink(missing_ok=True)
        values.ValueClass = values.MutexValue


def _give_back_room(folder: Path) -> None:
    """Cut the files of workers that are gone to what is used: they stay as long as the service runs.

    Not in a folder that somebody else made: processes of another container may use it.
    """
    if not folder.name.startswith(f"c4b-metrics-{os.getppid()}-"):
        return
    for path in folder.glob("*_*.db"):
        number = path.stem.rpartition("_")[2]
        if number.isdecimal() and not _is_alive(int(number)):
            with open(path, "rb") as file:
                used = int.from_bytes(file.read(4), sys.byteorder)  # as prometheus_client writes it
            if used < path.stat().st_size:
                os.truncate(path, max(used, _HEADER))


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # another user's, or no number of a process
        return True
    return True


class RequestMetrics:
    """Counts and times the requests of this worker.

    Paths are route patterns, so that clients cannot create new series.
    """

    def __init__(self) -> None:
        _reserve_shared_files()
        self.registry = CollectorRegistry()
        self._seconds = Histogram(
            "c4b_http_request_seconds",
            "Time to answer a request.",
            ["method", "route"],
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self._requests = Counter(
            "c4b_http_requests",
            "Requests by status.",
            ["method", "route", "status"],
            registry=self.registry,
        )
        self._series: dict[tuple[str, str, int], tuple[Histogram, Counter]] = {}

    def record(self, method: str, route: str, status: int, seconds: float) -> None:
        known = method if method in _METHODS else "other"
        series = self._series.get((known, route, status))
        if series is None:
            count = self._requests.labels(known, route, str(status or 499))
            series = self._series[known, route, status] = self._seconds.labels(known, route), count
        series[0].observe(seconds)
        series[1].inc()

    def render(self, states: list[Status] | None, broken: Iterable[str] = ()) -> bytes:
        """Return all metrics in Prometheus's text format.

        states: None if the store is not available. broken: names of deployments that cannot be read.
        """
        registry = self.registry
        if os.path.isdir(os.environ.get(_FOLDER, "")):  # several workers: sum over all of them
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]  # of prometheus_client
        deployments = CollectorRegistry()
        deployments.register(_Deployments(states, broken))
        return generate_latest(registry) + generate_latest(deployments)


class _Deployments(Collector):
    """Reads the states from the journal, so that every worker reports the same, also after a restart."""

    def __init__(self, states: list[Status] | None, broken: Iterable[str]) -> None:
        self._available = states is not None
        self._states, self._broken = states or [], broken

    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily(
            "c4b_store_available", "0 while the store cannot be read.", value=float(self._available)
        )
        unreadable = GaugeMetricFamily(
            "c4b_broken", "1 if the deployment cannot be read.", labels=["deployment"]
        )
        for state in self._states:
            unreadable.add_metric([state.name], 0.0)
        for name in self._broken:
            unreadable.add_metric([name], 1.0)
        yield unreadable
        for name, (help_, field) in _GAUGES.items():
            gauge = GaugeMetricFamily(name, help_, labels=["deployment"])
            for state in self._states:
                value = getattr(state, field)
                if value is not None:
                    gauge.add_metric([state.name], value)
            yield gauge
        alarm = GaugeMetricFamily("c4b_alarm", "1 while an alarm is latched.", labels=["deployment"])
        for state in self._states:
            alarm.add_metric([state.name], float(state.alarm is not None))
        yield alarm
        for mode in ("shadow", "frozen", "closed"):
            gauge = GaugeMetricFamily(
                f"c4b_{mode}", f"1 while the deployment is {mode}.", labels=["deployment"]
            )
            for state in self._states:
                gauge.add_metric([state.name], float(state.mode == mode))
            yield gauge
        ramp = GaugeMetricFamily(
            "c4b_ramp_share",
            "Largest share of rounds that may play a candidate.",
            labels=["deployment"],
        )
        for state in self._states:
            shares = [order.share for order in state.orders if order.share is not None]
            ramp.add_metric([state.name], shares[0] if shares else 1.0)
        yield ramp
        for name, (help_, field) in _COUNTERS.items():
            counter = CounterMetricFamily(name, help_, labels=["deployment"])
            for state in self._states:
                counter.add_metric([state.name], getattr(state, field))
            yield counter
