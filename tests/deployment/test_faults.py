"""Real processes, killed; a server that goes away; a disk that is full. Each says how many trials."""

from __future__ import annotations

import os
import resource
import select
import signal
import threading
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import psycopg
import pytest

from c4b import Deployment
from c4b.deployment.transactions.commands import Commands
from c4b.errors import StoreUnavailable
from c4b.journal.sql.sql_backend import SqlBackend, SqlJournal
from support.postgres_server import Server
from support.same_state import same_bits
from support.shop_world import (
    BASELINE,
    create,
    fork,
    in_agreement,
    outcome,
    replayed,
    rivals,
    seen,
    sql,
    store_of,
    trade,
    waited,
)

pytestmark = pytest.mark.slow  # processes that are killed

KILLS, BATCH = int(os.environ.get("C4B_KILLS", "40")), 20
"""SIGKILLs on each store, and how many of them one deployment has to survive."""


@pytest.fixture(autouse=True)
def compiled(tmp_path: Path) -> None:
    """Children are forked from a process in which every kernel is compiled."""
    with create(f"sqlite:///{tmp_path}/warm.db") as dep:
        trade(dep, 3)


def worker(url: str, seed: int, pipe: int) -> None:
    """Decide and observe for ever; tell the pipe of what was acknowledged, after it was."""
    rng = np.random.default_rng(seed)
    with Deployment.open(url, "shop", snapshot_every=7) as dep:
        n = 0
        while True:
            n += 1
            candidates = rivals(rng, 2)
            if n % 4 == 0:
                made = dep.decide_many(
                    [(candidates, BASELINE)] * 3, [f"{seed}-{n}-{k}" for k in range(3)]
                )
            else:
                made = [dep.decide(candidates, BASELINE, request_id=f"{seed}-{n}")]
            for each in made:
                os.write(pipe, f"decided {each.id} {each.action} {each.bank!r}\n".encode())
            reward = outcome(candidates, made[0].action, rng)
            dep.observe(made[0].id, reward)
            os.write(pipe, f"observed {made[0].id} {reward!r}\n".encode())


def start(url: str, seed: int) -> tuple[int, int]:
    """A worker's process id, and where to read what it acknowledged."""
    out, into = os.pipe()

    def child() -> None:
        os.close(out)
        worker(url, seed, into)

    pid = fork(child)
    os.close(into)
    return pid, out


def acknowledged(pipe: int) -> list[list[str]]:
    with os.fdopen(pipe) as lines:
        return [line.split() for line in lines if line.endswith("\n")]


def check(dep: Deployment, reports: list[list[str]]) -> None:
    """Everything that was acknowledged is there, as it was acknowledged."""
    for kind, id_, *rest in reports:
        record = dep.record(id_)
        if kind == "decided":
            assert [str(record.decision.action), repr(record.decision.bank)] == rest
        else:
            assert (record.outcome, repr(record.reward)) == ("observed", rest[0])


def test_sigkill_at_random_moments(url: str) -> None:
    """40 trials on each store; ``make kills`` 500."""
    rng, acknowledgements = np.random.default_rng(0), 0
    for batch in range(KILLS // BATCH):
        if batch:
            sql(url, "DELETE FROM c4b_snapshot")
            for table in ("c4b_journal", "c4b_deployment"):
                sql(url, f"DELETE FROM {table}")
        create(url).close()
        for trial in range(BATCH):
            pid, pipe = start(url, 1000 * batch + trial)
            if trial % 4:  # one in four is killed while it opens the deployment, or even before
                select.select([pipe], [], [], 60.0)
            time.sleep(rng.uniform(0.0, 0.06))
            os.kill(pid, signal.SIGKILL)
            reports = acknowledged(pipe)
            assert waited(pid) == -signal.SIGKILL
            acknowledgements += len(reports)
            with Deployment.open(url, "shop") as dep:
                check(dep, reports)
                assert same_bits(seen(dep), replayed(dep))
        with Deployment.open(url, "shop") as dep:
            report = dep.audit(sample=2)
            assert report.clean, report
            assert report.entries == dep.state().seq + 1
    assert acknowledgements >= 3 * KILLS // 4  # the kills met workers at work


def test_eight_processes_with_random_kills(url: str) -> None:
    """One run with 8 workers and 24 kills on each store: serialisable, nothing lost, no deadlock."""
    create(url).close()
    rng = np.random.default_rng(1)
    workers = [start(url, seed) for seed in range(8)]
    reports: list[list[str]] = []
    for kill in range(24):
        time.sleep(rng.uniform(0.02, 0.15))
        victim = int(rng.integers(len(workers)))
        pid, pipe = workers.pop(victim)
        os.kill(pid, signal.SIGKILL)
        waited(pid)
        reports += acknowledged(pipe)
        workers.append(start(url, 100 + kill))
    for pid, pipe in workers:
        os.kill(pid, signal.SIGKILL)
        waited(pid)
        reports += acknowledged(pipe)
    with Deployment.open(url, "shop") as dep:
        check(dep, reports)
        assert in_agreement(dep)
        report = dep.audit(sample=4)
        assert report.clean, report
        # banks continue each other: nobody spent what another had spent
        banks = [(r.decision.bank_before, r.decision.bank) for r in dep.decisions(limit=10**6)]
        assert len(reports) > 50
        assert all(after == before for (_, after), (before, _) in pairwise(banks))


@pytest.mark.parametrize("how", ["fast", "immediate"])
def test_the_server_restarts_in_the_middle(server: Server, postgres_url: str, how: str) -> None:
    """One orderly restart, one crash: errors while it is away, then on as before."""
    with create(postgres_url) as dep:
        trade(dep, 5)
        before = dep.state()
        server.stop(how)
        try:
            with pytest.raises(StoreUnavailable):
                dep.decide([], BASELINE, request_id="r")
            with pytest.raises(StoreUnavailable):
                dep.state()
            with pytest.raises(StoreUnavailable):
                Deployment.open(postgres_url, "shop")
        finally:
            server.start()
        assert dep.state() == before
        dep.decide([], BASELINE, request_id="r")
        trade(dep, 5, seed=1)
        server.stop(how)
        server.start()
        made = dep.decide([], BASELINE, request_id="s")  # a dead connection is replaced unnoticed
        dep.observe(made.id, 0.5)
        assert in_agreement(dep)
        assert dep.audit().clean


def test_lost_connections(server: Server, postgres_url: str) -> None:
    """40 connections cut at random moments under a worker that repeats its requests: 0 lost, 0 twice."""
    with create(postgres_url) as dep, psycopg.connect(server.url(), autocommit=True) as admin:
        rng, cuts, decided = np.random.default_rng(0), 0, {}

        def cutter() -> None:
            with psycopg.connect(server.url(), autocommit=True) as other:
                dice = np.random.default_rng(1)
                while True:
                    time.sleep(dice.uniform(0.0, 0.02))
                    other.execute(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s",
                        [postgres_url.split("/")[3].split("?", 1)[0]],
                    )

        pid = fork(cutter)
        try:
            n = 0
            while cuts < 40 or n < 100:
                n += 1
                candidates = rivals(rng)
                while True:
                    try:
                        made = dep.decide(candidates, BASELINE, request_id=f"r{n}")
                        dep.observe(made.id, 0.5)
                        break
                    except StoreUnavailable:
                        cuts += 1
                        if cuts == 40:  # a machine so slow that every try is cut would never end
                            os.kill(pid, signal.SIGKILL)
                decided[n] = made
        finally:
            os.kill(pid, signal.SIGKILL)
            waited(pid)
        admin.execute("SELECT 1")
        assert dep.state().rounds == len(decided)
        assert dep.state().observations == len(decided)
        assert in_agreement(dep)
        assert dep.audit().clean


def limit(pid: int, size: int) -> None:
    """Files of a process may not grow beyond ``size`` (-1: any): the disk is full."""

    def child() -> None:  # only its own user may do that to a process
        if os.geteuid() == 0 and pid != os.getppid():
            owner = os.stat(f"/proc/{pid}")
            os.setgid(owner.st_gid)
            os.setuid(owner.st_uid)
        _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard if size < 0 else size, hard))

    assert waited(fork(child)) == 0


def backend(dep: Deployment) -> int:
    """The process that writes for this deployment."""
    store = store_of(dep)
    if store._sqlite:
        return os.getpid()
    (writer,) = store._idle
    driver = writer.connection.dbapi_connection
    assert isinstance(driver, psycopg.Connection)
    return driver.info.backend_pid


def test_disk_full(url: str) -> None:
    """Writes fail until there is room again: a typed error, and nothing is half there."""
    big = BASELINE + np.random.default_rng(0).normal(size=(8000, 3)) * 0.01
    with create(url, snapshot_every=10) as dep:
        trade(dep, 20)
        before = dep.state()
        writer, written = backend(dep), 0
        limit(writer, 17_000_000)  # more than a segment of PostgreSQL's log
        try:
            while True:
                dep.decide(big, BASELINE, request_id=f"big-{written}")
                written += 1
        except StoreUnavailable:
            state = dep.state()  # reading goes on
        finally:
            if writer == os.getpid():
                limit(writer, -1)  # PostgreSQL's process ended with its connection
        assert state.rounds in (before.rounds + written, before.rounds + written + 1)
        dep.decide(big, BASELINE, request_id=f"big-{written}")
        trade(dep, 5, seed=2)
        assert dep.state().rounds == before.rounds + written + 6
        assert in_agreement(dep)
        assert dep.audit(sample=2).clean


def test_a_file_that_may_not_be_written(tmp_path: Path) -> None:
    """Decisions fail with a typed error; what is there can still be read and audited."""
    url = f"sqlite:///{tmp_path}/shop.db"
    with create(url) as dep:
        trade(dep, 10)
        before = dep.state()
    for path in tmp_path.iterdir():
        path.chmod(0o444)

    def child() -> None:
        if os.geteuid() == 0:  # nothing is read-only for root
            os.setgid(65534)
            os.setuid(65534)
        for attempt in (
            lambda: Deployment.open(url, "shop").decide([], BASELINE),
            lambda: create(url, "another"),
        ):
            try:
                attempt()
            except StoreUnavailable:
                continue
            os._exit(7)

    for folder in (tmp_path, *tmp_path.parents):
        if folder.owner() == tmp_path.owner() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o555)
    assert waited(fork(child)) == 0
    for path in tmp_path.iterdir():
        path.chmod(0o644)
    with Deployment.open(url, "shop") as dep:
        assert dep.state() == before
        assert dep.audit().clean


def test_a_fork_in_the_middle(url: str) -> None:
    """Parent and child go on with one object each had: separate connections, one journal."""
    with create(url) as dep:
        trade(dep, 3)
        pid = fork(lambda: trade(dep, 10, seed=1))
        trade(dep, 10, seed=2)
        assert waited(pid) == 0
        assert dep.state().rounds == 23
        assert in_agreement(dep)


def test_a_fork_while_another_thread_is_in_a_call(url: str) -> None:
    """The child goes on at once. On SQLite it inherits the thread's lock for ever, so it says so."""
    inside, go_on = threading.Event(), threading.Event()

    def wait(commands: Commands) -> None:
        inside.set()
        go_on.wait(60)

    def child() -> None:
        if url.startswith("sqlite"):
            with pytest.raises(StoreUnavailable, match="forked"):
                dep.decide([], BASELINE)
            assert dep.state().rounds == 3
        else:
            assert dep.state().rounds == 3
            with create(url, "other") as other:
                trade(other, 3)

    with create(url) as dep:
        trade(dep, 3)
        dep._transactor._alone = 0  # under the lock
        thread = threading.Thread(target=lambda: dep._transactor.write(wait))
        thread.start()
        assert inside.wait(60)
        began = time.monotonic()
        try:
            assert waited(fork(child)) == 0
            assert time.monotonic() - began < 20.0
        finally:
            go_on.set()
            thread.join()
        trade(dep, 3, seed=1)
        assert dep.state().rounds == 6
        assert in_agreement(dep)


def test_another_isolation_level(postgres_url: str) -> None:
    """As a cautious administrator sets it: writers that waited for the lock still see each other."""
    ((name,),) = sql(postgres_url, "SELECT current_database()")
    sql(postgres_url, f"ALTER DATABASE {name} SET default_transaction_isolation = 'repeatable read'")
    with create(postgres_url) as dep:
        workers = [fork(lambda n=n: trade(dep, 15, seed=n)) for n in range(4)]  # type: ignore[misc]
        assert [waited(pid) for pid in workers] == [0] * 4
        assert dep.state().rounds == 60
        assert dep.audit(sample=0).clean


def test_an_interrupted_call_leaves_a_sound_object(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """KeyboardInterrupt between the decision and its commit, 5 times."""
    with create(url) as dep:
        trade(dep, 5)

        def interrupted(*_: object) -> None:
            raise KeyboardInterrupt

        for n in range(5):
            with monkeypatch.context() as patch:
                patch.setattr(SqlJournal, "append", interrupted)
                patch.setattr(SqlBackend, "append_if_head", interrupted)
                with pytest.raises(KeyboardInterrupt):
                    dep.decide([], BASELINE)
            trade(dep, 2, seed=n)
        assert dep.state().rounds == 15
        assert in_agreement(dep)


def test_a_writer_that_waits_too_long_gives_up(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with create(url) as one:
        trade(one, 2)
        monkeypatch.setattr("c4b.journal.sql.sql_connections.WAIT", 1)
        three = Deployment.open(url, "shop")
        with one._transactor.backend.writing("shop"), pytest.raises(StoreUnavailable):
            three.decide([], BASELINE)
        three.decide([], BASELINE)
        three.close()
        assert in_agreement(one)
