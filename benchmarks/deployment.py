"""Speed of durable deployments, as ratios measured side by side in one run. Prints JSON lines.

    python benchmarks/deployment.py [--quick] [--folder DIR]

The reference is what the promise itself costs: two bare commits, through the same driver, with the same
settings, of the bytes that a decision and an outcome append, in a table of their own in the same file or
server. A bare commit is BEGIN, INSERT, COMMIT; for comparison also one INSERT that commits by itself, the
least that is possible. The sides take turns in small portions, in changing order, because fsync on a
shared machine changes from second to second; each figure is the median of the ratios of neighbours, and
the tenth and ninetieth percentile tell how far to trust it. With a fast disk the ratios are those of the
computations, with a slow one they tend to 1. Where others use the machine, "processor time here" of the
sides is steadier: of this process, so without a server's.

A durable round is measured in both forms: `decide` and `observe` as two calls, each with a commit of its
own, and `decide` with the outcome of the decision before, which is one commit for both.

A loop of bare commits alone is faster than the same commits in a program that computes something between
them: the caches are warm. So another side makes the same decisions in memory, without a store, and makes
a bare commit after each call. What ours takes longer than that is what the journal itself costs. For the
same reason PostgreSQL is measured twice where there are two cores: as the system places client and
server, often both on one core, and with a core for each.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import statistics
import sys
import tempfile
import time
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import psycopg

from c4b import Deployment, LinearModel
from c4b.journal.backend_registry import open_backend

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

POLICIES = ("refresh", "reserve-c4b+")
"""The paper's, for which the targets are, and the recommended one, whose arithmetic takes longer."""
DIM, SIZE = 10, 20
MODEL = LinearModel(dim=DIM, noise=0.1, norm_bound=1.0)
BASELINE = np.full(DIM, 0.3)


def pools(rng: np.random.Generator, rounds: int) -> list[Any]:
    return [BASELINE + 0.1 * rng.normal(size=(SIZE, DIM)) for _ in range(rounds)]


def seconds(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    start = clock()
    work()
    return clock() - start


Commit = Callable[[bytes], object]


def bare_sqlite(url: str) -> tuple[Commit, Commit]:
    connection = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA wal_autocheckpoint=2000")  # as ours: nobody tidies up for the other
    connection.execute("CREATE TABLE IF NOT EXISTS bare (id INTEGER PRIMARY KEY, content BLOB)")

    def alone(content: bytes) -> None:
        connection.execute("INSERT INTO bare (content) VALUES (?)", (content,))

    def commit(content: bytes) -> None:
        connection.execute("BEGIN IMMEDIATE")
        alone(content)
        connection.execute("COMMIT")

    return commit, alone


def bare_postgresql(url: str) -> tuple[Commit, Commit]:
    connection, other = psycopg.connect(url), psycopg.connect(url, autocommit=True)
    other.execute("CREATE TABLE IF NOT EXISTS bare (id bigserial PRIMARY KEY, content bytea)")
    cursor, free = connection.cursor(), other.cursor()
    insert = "INSERT INTO bare (content) VALUES (%s)"

    def commit(content: bytes) -> None:
        cursor.execute(insert, (content,))
        connection.commit()

    return commit, lambda content: free.execute(insert, (content,))


def in_turn(
    sides: list[Callable[[], object]],
    repetitions: int,
    clock: Callable[[], float] = time.perf_counter,
) -> list[list[float]]:
    """Seconds of every side, repetition by repetition; who comes first changes."""
    found = []
    for n in range(repetitions):
        order = [(n + k) % len(sides) for k in range(len(sides))]
        taken = {k: seconds(sides[k], clock) for k in order}
        found.append([taken[k] for k in range(len(sides))])
    return found


def ratios(values: list[float]) -> dict[str, float]:
    tenth, *_, ninetieth = statistics.quantiles(values, n=10)
    return {"median": statistics.median(values), "10 %": tenth, "90 %": ninetieth}


def row_bytes(url: str, name: str, seq: int) -> bytes:
    """As many bytes as one entry's row holds."""
    backend = open_backend(url)
    with backend.reading(name) as transaction:
        (entry,) = transaction.range(seq, seq, 1)
    backend.close()
    return entry.payload + entry.previous + bytes(24 + len(entry.kind) + len(entry.request_id or ""))


def single(
    url: str, bare: tuple[Commit, Commit], policy: str, repetitions: int, portion: int
) -> dict[str, Any]:
    """decide + observe against two bare commits; decide_many of 256 against single decisions."""
    rng, name = np.random.default_rng(0), f"bench-{uuid.uuid4().hex[:8]}"
    dep = Deployment.create(url, name, MODEL, policy, reserve=1.0)
    candidates = pools(rng, 64)
    count = 0

    def round_() -> str:
        nonlocal count
        count += 1
        made = dep.decide(
            candidates[count % 64], BASELINE, request_id=f"request-{count}", context={"user": count}
        )
        return made.id

    first = round_()
    dep.observe(first, 0.5)
    decided, observed = row_bytes(url, name, 1), row_bytes(url, name, 2)

    def ours() -> None:
        for _ in range(portion):
            dep.observe(round_(), 0.5)

    before = round_()

    def together() -> None:
        nonlocal before, count
        for _ in range(portion):
            count += 1
            ids = {"request_id": f"request-{count}", "context": {"user": count}}
            before = dep.decide(candidates[count % 64], BASELINE, outcomes=[(before, 0.5)], **ids).id

    def theirs(commit: Commit) -> Callable[[], None]:
        def work() -> None:
            for _ in range(portion):
                commit(decided)
                commit(observed)

        return work

    in_memory = Deployment.create(f"memory://{name}", name, MODEL, policy, reserve=1.0)

    def computed_and_bare() -> None:
        for n in range(portion):
            pool, id_ = candidates[n % 64], f"request-{uuid.uuid4().hex[:8]}"
            made = in_memory.decide(pool, BASELINE, request_id=id_, context={"user": n})
            bare[0](decided)
            in_memory.observe(made.id, 0.5)
            bare[0](observed)

    sides = [ours, theirs(bare[0]), theirs(bare[1]), computed_and_bare, together]
    in_turn(sides, 2)
    times = in_turn(sides, repetitions)
    processor = in_turn(sides, max(4, repetitions // 2), time.process_time)
    last: list[str] = []

    def many() -> None:
        nonlocal count
        rounds = [(candidates[n % 64], BASELINE) for n in range(256)]
        ids = [f"request-{count + n}" for n in range(1, 257)]
        made = dep.decide_many(rounds, request_ids=ids, contexts=[{"user": n} for n in range(256)])
        count += 256
        last.extend(each.id for each in made)

    def singles() -> None:
        last.extend([round_() for _ in range(2 * portion)])

    batches = []
    for n in range(1 + max(3, repetitions // 2)):
        ((a, b),) = in_turn([many, singles] if n % 2 else [singles, many], 1)
        batches.append((a / 256, b / 2 / portion) if n % 2 else (b / 256, a / 2 / portion))
        dep.observe_many([(each, 0.5) for each in last])  # so that the state stays as it is, untimed
        last.clear()
    del batches[0]
    dep.close()
    in_memory.close()

    def microseconds(side: int, rows: list[list[float]] = times) -> float:
        return 1e6 * statistics.median(row[side] for row in rows) / portion

    return {
        "policy": policy,
        "decide+observe, us": microseconds(0),
        "decide with the last outcome, us": microseconds(4),
        "two bare commits, us": microseconds(1),
        "two inserts that commit by themselves, us": microseconds(2),
        "the same in memory and two bare commits, us": microseconds(3),
        "share of the bare rate, in one commit (target >= 0.6; server 0.8)": ratios(
            [b / e for _, b, *_, e in times]
        ),
        "share of the bare rate, as two calls": ratios([b / a for a, b, *_ in times]),
        "share of the least possible": ratios([c / a for a, _, c, *_ in times]),
        "share of the rate of the same in memory and bare commits": ratios(
            [d / a for a, *_, d, _ in times]
        ),
        "processor time here, us": [round(microseconds(side, processor), 1) for side in range(5)],
        "bytes": [len(decided), len(observed)],
        "decide in a batch of 256, us": 1e6 * statistics.median(a for a, _ in batches),
        "decide alone, us": 1e6 * statistics.median(b for _, b in batches),
        "decide_many against single (target >= 7)": ratios([b / a for a, b in batches]),
    }


def filled(url: str, name: str, entries: int) -> None:
    rng = np.random.default_rng(1)
    candidates = pools(rng, 64)
    with Deployment.create(url, name, MODEL, "refresh", reserve=1.0) as dep:
        for start in range(0, entries // 2, 1000):
            size = min(1000, entries // 2 - start)
            made = dep.decide_many([(candidates[n % 64][:2], BASELINE) for n in range(size)])
            dep.observe_many([(each.id, 0.5) for each in made])


def opening(folder: Path, entries: int, repetitions: int) -> dict[str, Any]:
    """open + first decision: a long journal against one of 100 entries, in the same kind of file."""
    urls = {}
    for size in (100, entries):
        urls[size] = f"sqlite:///{folder}/open-{size}.db"
        filled(urls[size], "long", size)

    def first(size: int) -> Callable[[], None]:
        def work() -> None:
            with Deployment.open(urls[size], "long") as dep:
                dep.decide([BASELINE], BASELINE)

        return work

    first(100)(), first(entries)()
    pairs = [(seconds(first(entries)), seconds(first(100))) for _ in range(repetitions)]
    return {
        "entries": entries,
        "open + first decision, ms": 1e3 * statistics.median(a for a, _ in pairs),
        "the same with 100 entries, ms": 1e3 * statistics.median(b for _, b in pairs),
        "difference, ms (target < 300)": 1e3 * statistics.median(a - b for a, b in pairs),
    }


@contextmanager
def postgresql() -> Iterator[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from support.postgres_server import Server  # noqa: PLC0415 (from tests/, and only for this store)
    with tempfile.TemporaryDirectory(prefix="c4b-pg-", ignore_cleanup_errors=True) as folder:
        server = Server(Path(folder) / "data", waits_for_disk=True)
        try:
            yield server.url()
        finally:
            server.stop("immediate")


@contextmanager
def apart(url: str) -> Iterator[None]:
    """This process on one core, the server's on the others, also those that it starts later."""
    first, *others = sorted(os.sched_getaffinity(0))
    with psycopg.connect(url) as connection:
        (folder,) = connection.execute("SHOW data_directory").fetchone() or ("",)
    server = psutil.Process(int((Path(folder) / "postmaster.pid").read_text().split()[0]))
    for process in (server, *server.children()):
        process.cpu_affinity(others)
    os.sched_setaffinity(0, {first})
    try:
        yield
    finally:
        os.sched_setaffinity(0, {first, *others})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions, 20 000 entries")
    parser.add_argument("--folder", type=Path, default=None, help="where files are written")
    options = parser.parse_args()
    repetitions, portion = (10, 10) if options.quick else (40, 20)
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="c4b-bench-") as name:
        folder = Path(name)
        url = f"sqlite:///{folder}/bench.db"
        for policy in POLICIES:
            report = single(url, bare_sqlite(url), policy, repetitions, portion)
            print(json.dumps({"store": "sqlite", **report}))
        with postgresql() as url:
            for policy in POLICIES:
                report = single(url, bare_postgresql(url), policy, repetitions, portion)
                print(json.dumps({"store": "postgresql", **report}))
            if sys.platform == "linux" and len(os.sched_getaffinity(0)) > 1:
                with apart(url):
                    report = single(url, bare_postgresql(url), POLICIES[-1], repetitions, portion)
                print(json.dumps({"store": "postgresql, a core for each", **report}))
        size = 20_000 if options.quick else 1_000_000
        print(json.dumps({"store": "sqlite", **opening(folder, size, max(3, repetitions // 4))}))


if __name__ == "__main__":
    main()
