"""How fast the service is, as ratios measured side by side in one run; prints JSON.

    python benchmarks/service.py [--seconds 3] [--blocks 6] [--decisions 100000]

decide: throughput over HTTP (K = 32, d = 5, SQLite) against an endpoint of the same server, run as
`c4b serve` runs it, that parses the same body, with the same middleware and token check, and commits as
many bytes as a decision's entry to the same file. That endpoint is written as anybody would write it:
a route of the framework, and one commit for each request. Blocks of both alternate. ``ratio`` is our
rate over its rate; where others use the machine or the disk is slow, look at ``processor_ratio``: what
a request of the endpoint costs the server's process, user and system, over what a decision costs.
p99 against the median is measured at half of that load.
dashboard: everything that the page asks for, with many decisions in the journal.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sqlite3
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import numpy as np
import psutil
import uvicorn
from fastapi import APIRouter
from numpy.typing import NDArray
from starlette.concurrency import run_in_threadpool

from c4b import Deployment, LinearModel
from c4b.service import app as service
from c4b.service import schemas
from c4b.service.access.authorization import requires
from c4b.service.access.tokens import Scope
from c4b.service.serving import server
from c4b.service.settings import SETTINGS_VARIABLE, Settings

MODEL = LinearModel(dim=5, noise=0.3, norm_bound=1.5)
NAME = "bench"
CONNECTIONS = 16


def serve(store: str, port: int, size: int) -> None:
    """The service with one endpoint more."""
    os.environ[SETTINGS_VARIABLE] = Settings(store).to_json()
    app = service.from_environment()
    bare = APIRouter(route_class=requires(Scope.decide))
    connection = sqlite3.connect(
        store.removeprefix("sqlite:///"), isolation_level=None, check_same_thread=False, timeout=30.0
    )
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE IF NOT EXISTS bare (n INTEGER PRIMARY KEY, payload BLOB)")
    turn, payload = threading.Lock(), os.urandom(size)

    def commit() -> None:
        with turn:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO bare (payload) VALUES (?)", (payload,))
            connection.execute("COMMIT")

    @bare.post("/bare")
    async def only_commit(body: schemas.Round) -> schemas.Done:
        await run_in_threadpool(commit)
        return schemas.Done()

    app.include_router(bare)
    config = server.configuration(app)
    config.timeout_keep_alive = 60  # connections wait while the other side has its block
    config.host, config.port = "127.0.0.1", port
    uvicorn.Server(config).run()


class Busy(NamedTuple):
    """What one block measured."""

    rate: float
    """Requests a second."""
    processor: float
    """Seconds of the server's processor time for a request."""


class Load:
    """Keep-alive connections that send one request at a time, with as little overhead as possible."""

    def __init__(self, port: int, path: str, body: bytes) -> None:
        self.port = port
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        self.request = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
        self.times: list[float] = []

    async def connect(self) -> None:
        pairs = [asyncio.open_connection("127.0.0.1", self.port) for _ in range(CONNECTIONS)]
        self.free: asyncio.Queue[Any] = asyncio.Queue()
        for pair in await asyncio.gather(*pairs):
            self.free.put_nowait(pair)

    async def one(self, began: float) -> None:
        reader, writer = pair = await self.free.get()
        writer.write(self.request)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        await reader.readexactly(length)
        self.times.append(time.perf_counter() - began)
        self.free.put_nowait(pair)

    async def full(self, seconds: float, process: psutil.Process) -> Busy:
        """When every connection is always busy."""
        used = sum(process.cpu_times()[:2])
        end, done = time.perf_counter() + seconds, len(self.times)
        began = time.perf_counter()

        async def busy() -> None:
            while time.perf_counter() < end:
                await self.one(time.perf_counter())

        await asyncio.gather(*(busy() for _ in range(CONNECTIONS)))
        made = len(self.times) - done
        processor = (sum(process.cpu_times()[:2]) - used) / made
        return Busy(made / (time.perf_counter() - began), processor)

    async def paced(self, rate: float, seconds: float) -> NDArray[np.float64]:
        """Latencies at ``rate`` arrivals a second, counted from when a request was due."""
        self.times.clear()
        rng, tasks = np.random.default_rng(0), []
        due = time.perf_counter()
        end = due + seconds
        while due < end:
            due += rng.exponential(1.0 / rate)
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            tasks.append(asyncio.create_task(self.one(due)))
        await asyncio.gather(*tasks)
        return np.array(self.times)


async def compare(
    port: int, body: bytes, seconds: float, blocks: int, process: psutil.Process
) -> dict[str, Any]:
    decide = Load(port, f"/v1/deployments/{NAME}/decisions", body)
    bare = Load(port, "/bare", body)
    await decide.connect()
    await bare.connect()
    await decide.full(1.0, process)
    await bare.full(1.0, process)
    pairs: list[tuple[Busy, Busy]] = []
    for block in range(blocks):
        if block % 2:
            mine = await decide.full(seconds, process)
            theirs = await bare.full(seconds, process)
        else:
            theirs = await bare.full(seconds, process)
            mine = await decide.full(seconds, process)
        pairs.append((mine, theirs))
    ours = statistics.median(mine.rate for mine, _ in pairs)
    times = await decide.paced(0.5 * ours, max(5.0, 2 * seconds))
    median, high = np.quantile(times, [0.5, 0.99])
    return {
        "decide_per_second": round(ours, 1),
        "bare_per_second": round(statistics.median(bare.rate for _, bare in pairs), 1),
        "ratio": round(statistics.median(mine.rate / bare.rate for mine, bare in pairs), 3),
        "ratios": [round(mine.rate / bare.rate, 3) for mine, bare in pairs],
        "decide_processor_us": round(1e6 * statistics.median(mine.processor for mine, _ in pairs), 1),
        "bare_processor_us": round(1e6 * statistics.median(bare.processor for _, bare in pairs), 1),
        "processor_ratio": round(statistics.median(b.processor / a.processor for a, b in pairs), 3),
        "half_load_median_ms": round(1e3 * median, 2),
        "half_load_p99_ms": round(1e3 * high, 2),
        "p99_over_median": round(high / median, 2),
    }


def fill(store: str, decisions: int) -> int:
    """Many decisions, by the library; returns the bytes of one entry."""
    rng = np.random.default_rng(0)
    with Deployment.create(store, NAME, MODEL, reserve=5.0) as dep:
        for _ in range(0, decisions, 1000):
            rounds = [(pool(rng), [1.0, 0.0, 0.0, 0.0, 0.0]) for _ in range(1000)]
            made = dep.decide_many(rounds)
            dep.observe_many([(d.id, 0.9) for d in made])
        dep.decide(*rounds[0])
    with sqlite3.connect(store.removeprefix("sqlite:///")) as connection:
        query = "SELECT length(payload) FROM c4b_journal WHERE kind = 'decided' ORDER BY seq DESC LIMIT 1"
        return int(connection.execute(query).fetchone()[0])


def pool(rng: np.random.Generator) -> NDArray[np.float64]:
    u = rng.normal(size=(32, 4))
    return np.column_stack([np.ones(32), 0.4 * u / np.linalg.norm(u, axis=1, keepdims=True)])


def page(port: int) -> dict[str, Any]:
    """What the dashboard loads first for a deployment: the slowest request, and all bytes."""
    at = f"/v1/deployments/{NAME}"
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60.0) as http:
        static = [p for p in sorted(service.DASHBOARD.rglob("*")) if p.suffix in (".js", ".css", ".svg")]
        paths = ["/", *(f"/static/{p.relative_to(service.DASHBOARD)}" for p in static)]
        paths += ["/v1/deployments", at, f"{at}/series", f"{at}/decisions?limit=50", f"{at}/pending"]
        took, size = {}, 0
        for path in paths:
            began = time.perf_counter()
            answer = http.get(path)
            answer.raise_for_status()
            took[path] = time.perf_counter() - began
            size += len(answer.content)
    slowest = max(took, key=lambda path: took[path])
    return {
        "requests": len(paths),
        "slowest_request": slowest,
        "slowest_ms": round(1e3 * took[slowest], 1),
        "megabytes": round(size / 1e6, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0, help="of one block")
    parser.add_argument("--blocks", type=int, default=6)
    parser.add_argument("--decisions", type=int, default=100_000, help="in the journal")
    parser.add_argument("--serve", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve[0], int(options.serve[1]), int(options.serve[2]))
        return
    with tempfile.TemporaryDirectory() as folder:
        store = f"sqlite:///{folder}/bench.db"
        size, port = fill(store, options.decisions), 8799
        command = [sys.executable, __file__, "--serve", store, str(port), str(size)]
        with Path(folder, "log").open("wb") as log:
            process = psutil.Popen(command, stderr=log)
        try:
            _wait(port)
            shown = page(port)
            rng = np.random.default_rng(1)
            body = {"candidates": pool(rng).tolist(), "baseline": [1.0, 0.0, 0.0, 0.0, 0.0]}
            sent = json.dumps(body).encode()
            decided = asyncio.run(compare(port, sent, options.seconds, options.blocks, process))
        finally:
            process.terminate()
            process.wait()
    print(
        json.dumps(
            {
                "decide_over_http": {**decided, "limit": "ratio >= 2.2, p99 < 5 x median"},
                "dashboard": {"decisions": options.decisions, **shown, "limit": "1000 ms, 5 MB"},
                "entry_bytes": size,
                "cores": os.cpu_count(),
            },
            indent=1,
        )
    )


def _wait(port: int) -> None:
    for _ in range(1200):
        try:
            if httpx.get(f"http://127.0.0.1:{port}/readyz").status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    raise SystemExit("the server did not start")


if __name__ == "__main__":
    main()
