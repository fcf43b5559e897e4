"""What a dashboard reads: pages from either end, the series of decisions, what is pending, and why."""

from __future__ import annotations

import json
import sqlite3
import time
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from sqlalchemy.dialects import sqlite

from c4b import Deployment, Evidence
from c4b.deployment.questions import export
from c4b.deployment.questions.views import Point
from c4b.deployment.summary import downsampled_series
from c4b.deployment.transactions import entry_writer, snapshot
from c4b.errors import InvalidInput, JournalCorrupt, NoSafeAction, UnknownDecision
from c4b.journal import journal
from c4b.journal.entries import GENESIS, pack
from c4b.journal.journal import Journal
from c4b.journal.sql import sql_backend
from support.same_state import same_bits
from support.shop_world import (
    BASELINE,
    create,
    evidence_of,
    in_agreement,
    replayed,
    rivals,
    seen,
    sql,
    store_of,
    trade,
)

# -- pages -------------------------------------------------------------------------------------


def ids(records: Any) -> list[str]:
    return [record.decision.id for record in records]


def test_pages_from_the_newest_end(any_url: str) -> None:
    with create(any_url) as dep:
        assert dep.decisions(newest=True) == []
        trade(dep, 60)
        everything = dep.decisions()
        backwards = ids(everything)[::-1]
        assert ids(dep.decisions(newest=True)) == backwards
        assert ids(dep.decisions(newest=True, limit=7)) == backwards[:7]
        paged: list[str] = []
        while page := dep.decisions(newest=True, before=paged[-1] if paged else None, limit=9):
            paged += ids(page)
        assert paged == backwards
        turned = dep.decisions(newest=True, limit=60)[::-1]
        assert [r.outcome for r in turned] == [r.outcome for r in everything]
        between = {"after": backwards[40], "before": backwards[30]}
        assert ids(dep.decisions(**between)) == backwards[31:40][::-1]
        assert ids(dep.decisions(**between, newest=True)) == backwards[31:40]
        assert ids(dep.decisions(**between, newest=True, limit=2)) == backwards[31:33]
        assert ids(dep.decisions(before=0)) == ids(dep.decisions(before=-5, newest=True)) == []
        assert ids(dep.decisions(after=10**9, newest=True)) == []
        assert ids(dep.decisions(before=10**9, newest=True, limit=1)) == backwards[:1]
        assert ids(dep.decisions(before=1, newest=True)) == []


def test_a_page_reads_only_what_it_shows(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with create(sqlite_url) as dep:
        trade(dep, 200)
        hashed: list[int] = []
        of = journal.Journal._hash
        monkeypatch.setattr(journal.Journal, "_hash", lambda j, e: hashed.append(e.seq) or of(j, e))
        dep.decisions(newest=True, limit=5, before=dep.decisions(newest=True, limit=50)[-1].decision.id)
        assert len(hashed) < 250  # two pages, and the outcomes of 55 decisions


def test_postgresql_reads_no_journal_from_end_to_end(postgres_url: str) -> None:
    """And never joins it with itself, not even before the server has any statistics."""
    with create(postgres_url) as dep:
        pairs = [(rivals(np.random.default_rng(n)), BASELINE) for n in range(400)]
        made = dep.decide_many(pairs, request_ids=[f"r-{n}" for n in range(400)])
        dep.observe_many({each.id: 0.5 for each in made})
        for analyzed in (False, True):
            if analyzed:
                sql(postgres_url, "ANALYZE c4b_journal")
            with store_of(dep).reading() as transaction:
                for statement, index in (
                    (sql_backend._REQUESTED_MANY, "request_id"),
                    (sql_backend._ABOUT, "about"),
                ):
                    for size in (1, 50, 1000):
                        lists = {"seqs": list(range(size)), "requests": [str(n) for n in range(size)]}
                        compiled = statement.compile(dialect=transaction.dialect)
                        state = compiled.construct_expanded_state({"row": 1, **lists})
                        transaction._cursor.execute(f"EXPLAIN {state.statement}", state.parameters)
                        plan = "\n".join(row[0] for row in transaction._cursor.fetchall())
                        conditions = [line for line in plan.splitlines() if "Index Cond" in line]
                        assert "Join" not in plan
                        assert "Nested Loop" not in plan
                        if analyzed and size < 400:  # a list longer than the journal is another thing
                            assert any(index in line for line in conditions), plan


def test_sqlite_reads_no_journal_from_end_to_end(sqlite_url: str) -> None:
    """Every query finds its rows by an index, whatever the length of its list."""
    create(sqlite_url).close()
    connection = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))
    dialect = sqlite.dialect(paramstyle="named")  # type: ignore[no-untyped-call]  # SQLAlchemy's
    one: dict[str, Any] = {"row": 1, "place": 1, "request": "r", "first": 1, "last": 1, "count": 1}
    for statement, index in (
        (sql_backend._AT, "PRIMARY KEY (rowid=?)"),
        (sql_backend._FORWARDS, "PRIMARY KEY (rowid>? AND rowid<?)"),
        (sql_backend._BACKWARDS, "PRIMARY KEY (rowid>? AND rowid<?)"),
        (sql_backend._AMONG, "PRIMARY KEY (rowid=?)"),
        (sql_backend._REQUESTED, "c4b_journal_request (deployment=? AND request_id=?)"),
        (sql_backend._REQUESTED_MANY, "c4b_journal_request (deployment=? AND request_id=?)"),
        (sql_backend._ABOUT, "c4b_journal_about (deployment=? AND about=?)"),
    ):
        for size in (1, 50, 1000):
            numbers = list(range(size))
            lists = {"seqs": numbers, "places": numbers, "requests": [str(n) for n in numbers]}
            made = statement.compile(dialect=dialect).construct_expanded_state({**one, **lists})
            plan = connection.execute(f"EXPLAIN QUERY PLAN {made.statement}", made.parameters)
            steps = [row[3] for row in plan]
            assert any(index in step for step in steps), steps
            assert not any(step.endswith("(deployment=?)") or "SCAN" in step for step in steps), steps


def test_bad_pages(any_url: str) -> None:
    with create(any_url) as dep:
        trade(dep, 3)
        for wrong in ("other-1", "shop-01", "shop", True, 1.5):
            for argument in ("after", "before"):
                with pytest.raises(UnknownDecision, match=argument):
                    dep.decisions(**{argument: wrong})  # type: ignore[arg-type]  # wrong on purpose
        for call, argument, value in (
            (dep.decisions, "limit", 0),
            (dep.decisions, "newest", 1),
            (dep.series, "points", 1),
            (dep.series, "points", 2.0),
            (dep.pending, "limit", -1),
            (dep.pending, "limit", True),
        ):
            with pytest.raises(InvalidInput, match=argument):
                call(**{argument: value})  # type: ignore[operator]  # wrong on purpose


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM c4b_journal WHERE seq = :seq",
        "UPDATE c4b_journal SET kind = 'observed' WHERE seq = :seq",
        "UPDATE c4b_journal SET at = at + 1 WHERE seq = :seq",
        "DELETE FROM c4b_journal WHERE seq <= :seq",
    ],
)
def test_nothing_can_be_hidden_from_a_page(url: str, damage: str) -> None:
    with create(url) as dep:
        trade(dep, 20)
        number = dep.decisions()[10].decision.receipt.seq  # type: ignore[union-attr]
        sql(url, damage, seq=number)
        assert len(dep.decisions(newest=True, limit=3)) == 3  # it does not go that far back
        with pytest.raises(JournalCorrupt, match=f"entry {number} "):
            dep.decisions(newest=True)


# -- the series --------------------------------------------------------------------------------


def counted(dep: Deployment) -> list[tuple[float, ...]]:
    """(round, bank, fallbacks, pending, certificate, radius, estimate) of every decision, by entry."""
    rows, fallbacks, pending = [], 0, 0
    with dep._transactor.backend.reading(dep.name) as transaction:
        for entry in Journal(transaction).tail(-1, GENESIS):
            pending -= entry.kind in ("observed", "forgotten")
            if entry.kind == "decided":
                fields, arrays = entry.unpack()
                fallbacks += fields["action"] is None
                pending += 1
                _, bank, certificate, _, radius = arrays["numbers"].tolist()
                b = arrays["baseline"]
                played = b if fields["action"] is None else arrays["candidates"][fields["action"]]
                estimate = round(float((played - 0.9 * b) @ arrays["estimate"]), 9)
                rows.append((len(rows) + 1, bank, fallbacks, pending, certificate, radius, estimate))
    return rows


def rounded(point: Point) -> tuple[float, ...]:
    return (
        point.round,
        point.bank,
        point.fallbacks,
        point.pending,
        point.certificate,
        point.radius,
        round(point.estimate, 9),
    )


@pytest.mark.parametrize("kept", [1024, 16])
def test_the_series_is_what_the_journal_says(
    any_url: str, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downsampled_series, "KEPT", kept)
    with create(any_url, snapshot_every=20, reserve=0.05) as dep:
        assert dep.series() == []
        for size in (1, 1, 14, 40, 57):
            trade(dep, size, seed=size)
            truth, points = counted(dep), dep.series()
            assert [rounded(p) for p in points] == [truth[p.round - 1] for p in points]
            assert (points[0].round, points[-1].round) == (1, len(truth))
            assert len(points) >= min(len(truth), kept // 2)
            gaps = np.diff([p.round for p in points][:-1])
            assert len(set(gaps.tolist())) <= 1
            few = dep.series(points=5)
            assert (few[0], few[-1], len(few)) == (points[0], points[-1], min(5, len(points)))
            assert [p.at for p in points] == sorted(p.at for p in points)
        assert 0 < points[-1].fallbacks < points[-1].round
        dep.forget(dep.decisions(newest=True, limit=1)[0].decision.id)
        with Deployment.open(any_url, "shop") as fresh:
            assert fresh.series() == points
        assert in_agreement(dep)
        assert dep.audit().clean
        json.dumps([p.to_dict() for p in points], allow_nan=False)
        assert set(points[0].to_dict()) == set(Point.__slots__)


def test_a_failed_batch_leaves_no_trace_in_the_series(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downsampled_series, "KEPT", 8)
    with create(sqlite_url, reserve=0.2, baseline_nonnegative=False) as dep:
        for _ in range(7):
            dep.decide([], 0.01 * BASELINE)
        before = dep.series()
        with pytest.raises(NoSafeAction):
            dep.decide_many([([], 0.001 * BASELINE)] * 20 + [([], 100.0 * BASELINE)])
        assert dep.series() == before
        assert in_agreement(dep)


def test_without_a_gate_banks_are_none(sqlite_url: str) -> None:
    with create(sqlite_url, policy="linucb", snapshot_every=5) as dep:
        trade(dep, 10)
        assert [p.to_dict()["bank"] for p in dep.series()] == [None] * 10
        assert in_agreement(dep)
        assert dep.audit().clean


def test_a_snapshot_without_a_series(any_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the first versions wrote them: read all the same, and clean."""
    encode = snapshot.encode
    with create(any_url, snapshot_every=10) as dep:
        with monkeypatch.context() as early:
            early.setattr(snapshot, "encode", lambda state: encode(state, series_columns=0))
            trade(dep, 30)
        points = dep.series()
    with Deployment.open(any_url, "shop", snapshot_every=10) as dep:
        assert seen(dep).series is None
        trade(dep, 3, seed=2)
        assert dep.audit().clean
        later = dep.series()
        assert later[: len(points)] == points
        assert same_bits(seen(dep), replayed(dep))
        trade(dep, 80, seed=3)
        assert dep.audit().clean
    with Deployment.open(any_url, "shop") as dep:
        assert seen(dep).series is not None
        assert len(dep.series()) == 113


def test_the_series_stays_small_and_even() -> None:
    made = downsampled_series.DownsampledSeries()
    for n in range(1, 5001):
        made.add(downsampled_series.Row(n, 0, 0.0, 0, 0, 0.0, 0.0, 0.0, n), lambda: 0.0)
        rows = made.rows(500)
        assert len(rows) == min(n, 500)
        assert (rows[0].round, rows[-1].round) == (1, n)
    assert downsampled_series.KEPT // 2 <= len(made.kept) <= downsampled_series.KEPT
    assert len({b.round - a.round for a, b in zip(made.kept, made.kept[1:], strict=False)}) == 1
    again = downsampled_series.DownsampledSeries.restored(made.array(), made.stride)
    assert (again.kept, again.last, again.stride) == (made.kept, made.last, made.stride)


def test_shares_of_fallbacks() -> None:
    def point(round_: int, fallbacks: int) -> Point:
        return Point(round_, datetime.now(UTC), 0.0, fallbacks, 0, 0.0, 0.0, 0.0, round_)

    assert export.shares([]) == []
    assert export.shares([point(1, 1), point(2, 1)]) == [1.0, 0.5]
    assert export.shares([point(1, 1), point(201, 51), point(401, 151)]) == [1.0, 0.25, 0.5]


# -- pending -----------------------------------------------------------------------------------


def test_pending_decisions_and_their_age(any_url: str) -> None:
    now = time.time()
    with create(any_url) as dep:
        assert dep.pending() == []
        assert dep.state().oldest_pending_age is None
        made = []
        for n in range(5):
            dep._transactor.clock = lambda n=n: now + 10 * n
            made.append(dep.decide([], BASELINE, request_id=f"r{n}", context={"n": n}))
        dep.observe(made[1].id, 0.5)
        dep._transactor.clock = lambda: now + 100
        listed = dep.pending()
        assert [p.id for p in listed] == [made[n].id for n in (0, 2, 3, 4)]
        assert [p.age for p in listed] == pytest.approx([100.0, 80.0, 70.0, 60.0], abs=0.1)
        assert [p.request_id for p in listed] == ["r0", "r2", "r3", "r4"]
        assert [p.context for p in listed] == [{"n": n} for n in (0, 2, 3, 4)]
        assert dep.pending(limit=2) == listed[:2]
        state = dep.state()
        assert (state.pending, state.waiting, state.oldest_pending) == (4, 1, made[0].id)
        assert state.oldest_pending_age == pytest.approx(100.0, abs=0.1)
        assert state.to_dict()["oldest_pending_age"] == pytest.approx(100.0, abs=0.1)
        plain = listed[0].to_dict()
        assert set(plain) == {"id", "at", "age", "request_id", "context", "action", "label"}
        json.dumps(plain, allow_nan=False)
        dep._transactor.clock = lambda: now - 100  # a clock that is wrong
        assert dep.pending(limit=1)[0].age == 0.0
        dep.observe_many([(d.id, 0.5) for d in made])
        assert dep.pending() == []
        assert dep.state().pending == dep.state().waiting == 0


def test_pending_on_arrival_and_after_reopening(any_url: str) -> None:
    with create(any_url, absorb="on-arrival", snapshot_every=3) as dep:
        made = [dep.decide([], BASELINE) for _ in range(6)]
        dep.observe(made[0].id, 0.5)
        dep.forget(made[3].id)
        with Deployment.open(any_url, "shop") as other:
            assert [p.id for p in other.pending()] == [made[n].id for n in (1, 2, 4, 5)]
            assert other.state().oldest_pending == made[1].id


# -- why ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["refresh", "separate", "reserve-c4b+"])
def test_why_tells_the_whole_interval(any_url: str, policy: str) -> None:
    with create(any_url, policy=policy) as dep:
        trade(dep, 15)
        candidates = rivals(np.random.default_rng(5))
        known = evidence_of(dep)
        evidence = Evidence(known.model, refined=False)  # policies use the list of ellipsoids
        evidence.flat[:] = known.flat
        rows = candidates - 0.9 * BASELINE
        lower, upper = ([ask(row) for row in rows] for ask in (evidence.lower, evidence.upper))
        separate = [evidence.lower(x) - 0.9 * evidence.upper(BASELINE) for x in candidates]
        estimate = (rows @ evidence.estimate).tolist()
        made = dep.decide(candidates, BASELINE)
        trade(dep, 5, seed=1)
        record = dep.record(made.id).to_dict()
        assert json.loads(json.dumps(record, allow_nan=False)) == record
        near = {"rel": 1e-9, "abs": 1e-12}
        assert [c["joint"] for c in record["candidates"]] == pytest.approx(lower, **near)
        assert [c["upper"] for c in record["candidates"]] == pytest.approx(upper, **near)
        assert [c["separate"] for c in record["candidates"]] == pytest.approx(separate, **near)
        assert [c["estimate"] for c in record["candidates"]] == pytest.approx(estimate, **near)
        assert [c["features"] for c in record["candidates"]] == candidates.tolist()
        assert [c["chosen"] for c in record["candidates"]] == [k == made.action for k in range(4)]
        assert all(c["admissible"] == (c["margin"] >= 0.0) for c in record["candidates"])
        assert record["baseline"] == BASELINE.tolist()
        assert (record["bank_before"], record["bank"]) == (made.bank_before, made.bank)
        assert record["radius"] == made.radius
        assert dep.explain(made.id).to_dict()["candidates"][0]["upper"] == pytest.approx(upper[0])
        assert made.explain().to_dict()["candidates"][0]["upper"] is None  # the decision alone
        empty = dep.decide([], BASELINE)
        assert dep.record(empty.id).to_dict()["candidates"] == []
        assert dep.audit().clean


def test_a_journal_without_intervals(any_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the first versions wrote them: read, replayed and audited all the same."""

    def early(fields: Any, arrays: Any) -> bytes:
        return pack(fields, {k: a for k, a in arrays.items() if k not in ("estimate", "upper")})

    with create(any_url, policy="reserve-c4b+") as dep:
        with monkeypatch.context() as patch:
            patch.setattr(entry_writer, "pack", early)
            gate = dep._transactor.read(lambda journal, state: state.gate)
            patch.setattr(gate, "leaves_out_margins", False)
            trade(dep, 10)
        first = dep.decisions(limit=1)[0]
        assert first.contrasts is None
        plain = first.to_dict()["candidates"][0]
        assert (plain["estimate"], plain["upper"]) == (None, None)
        assert plain["joint"] is not None
        trade(dep, 10, seed=1)
        assert dep.decisions(newest=True, limit=1)[0].contrasts is not None
        assert in_agreement(dep)
        assert dep.audit().clean


def test_records_are_equal_if_they_say_the_same(any_url: str) -> None:
    with create(any_url) as dep:
        trade(dep, 5)
        one, other = dep.decisions(), dep.decisions()
        assert one == other
        assert one[0] != one[1]
        assert len({*one, *other}) == 5
        last = dep.decide([], BASELINE)
        pending = dep.record(last.id)
        dep.observe(last.id, 0.5)
        assert pending != dep.record(last.id)
