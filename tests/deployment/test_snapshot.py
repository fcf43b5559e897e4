"""Snapshot and tail continue exactly as the whole journal does."""

from __future__ import annotations

import json

import numpy as np
import pytest

from c4b import Deployment
from c4b.deployment.summary.journal_summary import ALARMS, JournalSummary
from c4b.deployment.transactions import snapshot
from c4b.deployment.transactions.state import State
from c4b.journal.entries import Entry, canonical, pack
from c4b.ledger import books
from support.same_state import same_bits
from support.shop_world import (
    BASELINE,
    compiled,
    create,
    in_agreement,
    replayed,
    rivals,
    seen,
    sql,
    trade,
)


@pytest.mark.parametrize("every", [1, 7, 50])
@pytest.mark.parametrize("policy", ["refresh", "checkpoints", "reserve-c4b+"])
def test_snapshot_and_tail_equal_replay_bit_for_bit(url: str, every: int, policy: str) -> None:
    with create(url, policy=policy, snapshot_every=every) as dep:
        trade(dep, 40)
        made = dep.decide(rivals(np.random.default_rng(9)), BASELINE)
        dep.executed(made.id)
        dep.forget(dep.decide([], BASELINE).id)
        kept = sql(url, "SELECT seq FROM c4b_snapshot")
        assert len(kept) == min(2, (dep.state().seq + 1) // max(every, 1))
        assert in_agreement(dep)


def test_a_state_survives_the_journey(sqlite_url: str) -> None:
    with create(sqlite_url) as dep:
        trade(dep, 30)
        state = seen(dep)
        assert same_bits(snapshot.decode(snapshot.encode(state), dep.configuration), state)
        moved = replayed(dep)
        assert same_bits(moved, state)
        compiled(moved).evidence.flat[-1] += 1.0
        assert not same_bits(moved, state)


def test_a_snapshot_from_before_models_had_a_range(sqlite_url: str) -> None:
    with create(sqlite_url) as dep:
        trade(dep, 10)
        state = seen(dep)
        content = snapshot.encode(state, with_range=False)
        assert len(content) < len(snapshot.encode(state))
        assert not snapshot.differs(content, state)
        trade(dep, 1)
        assert snapshot.differs(content, seen(dep))


def test_the_short_way_to_open_decisions_gives_the_same_text(sqlite_url: str) -> None:
    with create(sqlite_url) as dep:
        dep.decide_many([([], BASELINE)] * 3)
        content = snapshot.encode(seen(dep))
        header, _ = json.JSONDecoder().raw_decode(content[4:].decode("latin-1"))
        assert len(header["open"]) == 3
        assert content[4:].startswith(json.dumps(header).encode())


def test_opening_replays_the_tail_only(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with create(sqlite_url, snapshot_every=50) as dep:
        trade(dep, 100)
        trade(dep, 1, seed=1)
    applied: list[Entry] = []
    apply = State.apply

    def counting(state: State, entry: Entry) -> None:
        applied.append(entry)
        apply(state, entry)

    monkeypatch.setattr(State, "apply", counting)
    with Deployment.open(sqlite_url, "shop") as dep, Deployment.open(sqlite_url, "shop") as other:
        assert len(applied) <= 2 * 50
        applied.clear()
        dep.decide([], BASELINE)
        dep.decide([], BASELINE)
        assert not applied  # its own entries need no replay
        other.decide([], BASELINE)
        assert [entry.kind for entry in applied] == ["decided"] * 2  # of the other worker, and no more


def test_many_pending_decisions_do_not_make_snapshots_frequent(sqlite_url: str) -> None:
    with create(sqlite_url, snapshot_every=5) as dep:
        for _ in range(100):
            dep.decide([], BASELINE)
        (count,) = sql(sqlite_url, "SELECT snapshot FROM c4b_deployment")[0]
        assert count < 100
        assert in_agreement(dep)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"b": None, "a": 'naïve \\ "q" \n\u2028', "c": -(2**70), "d": True, "e": False, "ü": 0},
        {"b": 1.5, "a": [1, {"z": None, "y": "x"}], "c": -0.0},
        {"a": {"b": {}}, "c": 1e300},
    ],
)
def test_the_short_way_to_json_gives_the_same_text(fields: dict[str, object]) -> None:
    plain = json.dumps(fields, sort_keys=True, separators=(",", ":"), allow_nan=False)
    assert canonical(fields) == plain
    header = {"arrays": [["x", [2, 1]]], "fields": fields}
    text = json.dumps(header, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
    payload = pack(fields, {"x": np.zeros((2, 1))})
    assert payload == len(text).to_bytes(4, "little") + text + bytes(16)
    assert pack(fields, {"x": np.zeros((2, 1), dtype=">f8")}) == payload


def test_an_entry_keeps_every_bit() -> None:
    arrays = {"a": np.array([[1.5, -0.0], [np.nan, -np.inf]]), "b": np.array([5e-324])}
    payload = pack({"text": "naïve", "none": None, "n": 2**60}, arrays)
    entry = Entry(7, "decided", None, "r", 123, payload, bytes(32))
    fields, unpacked = entry.unpack()
    assert fields == {"text": "naïve", "none": None, "n": 2**60}
    assert all(unpacked[key].tobytes() == array.tobytes() for key, array in arrays.items())
    assert pack(fields, unpacked) == payload
    changes: list[dict[str, object]] = [
        {"seq": 8},
        {"kind": "learned"},
        {"about": 0},
        {"request_id": None},
        {"request_id": "s"},
        {"at": 124},
        {"payload": payload + b"\0"},
        {"previous": b"\1" + bytes(31)},
    ]
    hashes = {entry.hash(), *(entry._replace(**change).hash() for change in changes)}  # type: ignore[arg-type]
    assert len(hashes) == 1 + len(changes)


@pytest.mark.parametrize("executed", [True, False])
@pytest.mark.parametrize("change", [2.0**-50, 1e-3])
def test_earlier_banks_that_were_corrected_in_another_arithmetic(
    sqlite_url: str, executed: bool, change: float
) -> None:
    """Their last bits are forgiven where another action was executed, and nothing else."""
    with create(sqlite_url, policy="reserve-c4b+") as dep:
        trade(dep, 30)
        rng = np.random.default_rng(3)
        while (made := dep.decide(rivals(rng), BASELINE)).action is None:
            pass
        if executed:
            dep.executed(made.id, None, independent=True)
        state = dep._transactor._state
        assert state is not None
        assert state.counts["executed"] == executed
        kept = books.views(compiled(state).ledger)[0].kept_bank
        at = int(np.flatnonzero(kept)[0])
        before = kept[at]
        kept[at] += change * before
        stored = snapshot.encode(state)
        kept[at] = before
        assert snapshot.differs(stored, state)
        assert snapshot.is_near(stored, state, sets_agree=True) == (executed and change < 1e-6)


def often_overdrawn_then_refuted(url: str) -> Deployment:
    """More alarms of the ledger than are remembered, and then one against the model."""
    dep = create(url, reserve=1.0, snapshot_every=20)
    made = dep.decide(rivals(np.random.default_rng(0)), BASELINE)
    for _ in range(ALARMS + 1):
        dep.executed(made.id, [0.2, 1.0, 1.0])
        dep.executed(made.id, None)
    for n in range(30):
        dep.observe(dep.decide([], BASELINE).id, 50.0 * (-1) ** n)
    dep.observe(made.id, 50.0)  # which the others waited for
    trade(dep, 30)
    return dep


def test_many_alarms_of_the_ledger_hide_none_against_the_model(sqlite_url: str) -> None:
    with often_overdrawn_then_refuted(sqlite_url) as dep:
        state = dep.state()
        assert state.alarm is not None
        assert state.alarm_since is not None
        assert next(iter(dep.decisions())).alarm_later == state.alarm_since
        assert in_agreement(dep)
        assert dep.audit().clean


def test_earlier_snapshots_that_forgot_the_alarm_are_completed(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal tells when it was raised; and the audit of such a journal is clean."""
    with monkeypatch.context() as earlier:
        everything = JournalSummary.alarm

        def first_ones(self: JournalSummary, seq: int, at: int, reason: str, source: str) -> None:
            if len(self.alarms) < ALARMS:
                everything(self, seq, at, reason, source)

        earlier.setattr(JournalSummary, "alarm", first_ones)
        with often_overdrawn_then_refuted(sqlite_url) as dep:
            assert dep.state().alarm_since is None
    with Deployment.open(sqlite_url, "shop", snapshot_every=20) as dep:
        assert dep.state().alarm_since is not None
        for _ in range(2):
            report = dep.audit()
            assert report.clean, report
            assert report.snapshots > 0
            trade(dep, 20)
