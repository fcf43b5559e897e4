"""What a journal keeps: less, compressed, no contexts, archives. Nothing of it breaks the chain."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import zlib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from c4b import Decision, Deployment
from c4b.deployment.audit.entry_format import entry_contents
from c4b.deployment.questions.witness import Witness
from c4b.deployment.transactions import recording
from c4b.errors import EntryArchived, InvalidInput, JournalCorrupt
from c4b.journal import envelope, seal
from c4b.journal.entries import DECIDED, pack
from c4b.policies import CandidateField
from support.shop_world import (
    BASELINE,
    create,
    entries_of,
    forge,
    in_agreement,
    rivals,
    sql,
)

KEY = "0123456789abcdef0123456789abcdef"
EVERY = {
    "plain": {},
    "compressed": {"compress": True},
    "executed": {"records": "executed"},
    "both": {"compress": True, "records": "executed"},
}


def busy(dep: Deployment, rounds: int, seed: int = 0) -> list[str]:
    """Decide with contexts and request ids, and report every outcome."""
    rng, ids = np.random.default_rng(seed), []
    for n in range(rounds):
        made = dep.decide(
            rivals(rng), BASELINE, request_id=f"{seed}-{n}", context={"user": f"u-{n}", "é": '"'}
        )
        dep.observe(made.id, float(rng.normal(0.5, 0.1)))
        ids.append(made.id)
    return ids


@pytest.mark.parametrize("options", EVERY.values(), ids=EVERY)
@pytest.mark.parametrize("key", [None, KEY], ids=["open", "sealed"])
def test_every_way_of_keeping_entries(
    any_url: str, options: dict[str, Any], key: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if key is not None:
        monkeypatch.setenv(seal.KEY, key)
    with create(any_url, snapshot_every=11, **options) as dep:
        ids = busy(dep, 25)
        again = dep.decide(rivals(np.random.default_rng(0)), BASELINE, request_id="0-0")
        assert again.id == ids[0]
        assert again == dep.record(ids[0]).decision
        assert dep.record(ids[3]).context == {"user": "u-3", "é": '"'}
        report = dep.audit(sealed=key is not None)
        assert report.clean, str(report)
        assert report.unchecked_choices == (25 if "records" in options else 0)
        assert in_agreement(dep)
        for entry in entries_of(dep):
            fields, arrays = entry.unpack()
            theirs, numbers = entry_contents(entry.payload)
            assert fields == theirs | {"context": fields.get("context")} or "context" not in fields
            assert all(np.array_equal(arrays[name], numbers[name], equal_nan=True) for name in arrays)


def test_only_what_was_executed_is_kept(memory_url: str) -> None:
    with create(memory_url, records="executed", reserve=5.0) as dep:
        made = dep.decide(rivals(np.random.default_rng(0)), BASELINE, request_id="r")
        assert made.action is not None
        record = dep.record(made.id)
        assert record.kept == (made.action,)
        assert record.candidates.shape == (4, 3)
        assert np.isfinite(record.candidates).all(axis=1).nonzero()[0].tolist() == [made.action]
        explanation = record.to_dict()
        assert [each["candidate"] for each in explanation["candidates"]] == [made.action]
        assert "Only what was executed is on record" in explanation["summary"]
        json.dumps(explanation, allow_nan=False)
        with pytest.raises(InvalidInput, match="other data"):
            dep.decide(rivals(np.random.default_rng(1)), BASELINE, request_id="r")
        frozen = dep.freeze("stop", by="ann") and dep.decide(rivals(np.random.default_rng(0)), BASELINE)
        assert frozen.proposed is not None
        assert dep.record(frozen.id).kept == (frozen.proposed,)
        assert dep.audit().clean


@pytest.mark.parametrize("policy", ["reserve-c4b+", "checkpoints", "clucb"])
def test_a_reduced_journal_holds_the_same_numbers_of_what_it_keeps(memory_url: str, policy: str) -> None:
    """It computes no margins that it would not keep."""
    told = {"baseline_mean": 0.5} if policy == "clucb" else {}
    with (
        create(memory_url, "all", policy=policy, reserve=2.0) as everything,
        create(memory_url, "some", policy=policy, reserve=2.0, records="executed") as executed,
    ):
        for dep in (everything, executed):
            rng = np.random.default_rng(5)
            for n in range(16):
                if n == 12:
                    dep.freeze("stop", by="ann")
                made = dep.decide(rivals(rng, 30), BASELINE, **told)
                dep.observe(made.id, float(rng.normal(0.5, 0.1)))
            assert dep.audit().clean
        for full, less in zip(entries_of(everything), entries_of(executed), strict=True):
            if full.kind == DECIDED:
                wanted, kept = recording.reduced(*recording.expanded(*full.unpack())), less.unpack()
                wanted[0].pop(recording.EVALUATED, None)
                assert wanted[0] == kept[0]
                for name in wanted[1].keys() | kept[1].keys():
                    if name == "details":  # separate bounds explain only, and are recomputed elsewhere
                        deciding = [f for f in CandidateField if f != CandidateField.SEPARATE]
                        assert np.array_equal(wanted[1][name][deciding], kept[1][name][deciding])
                    elif name != "upper":
                        assert wanted[1][name].tobytes() == kept[1][name].tobytes()


@pytest.mark.parametrize("what", ["certificate", "margin", "index"])
def test_what_an_audit_still_finds_in_a_reduced_journal(sqlite_url: str, what: str) -> None:
    def change(fields: dict[str, Any], arrays: dict[str, Any]) -> None:
        if what == "certificate":
            arrays["numbers"][2] += 1e-3
        elif what == "margin":
            arrays["details"][1] += 1e-3
            arrays["numbers"][1] += 1e-3
        else:
            fields["kept"] = [fields["kept"][0] + 1]

    with create(sqlite_url, records="executed", reserve=5.0) as dep:
        assert dep.decide(rivals(np.random.default_rng(0)), BASELINE).action is not None
        forge(dep, 1, change)
        assert not dep.audit().clean


@pytest.mark.parametrize(
    ("policy", "terms"),
    [("c-squarecb", {"seed": 1}), ("cucb", {}), ("budget-first", {"horizon": 9}), ("clucb-source", {})],
)
def test_what_is_audited_by_deciding_again_needs_everything(
    memory_url: str, policy: str, terms: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInput, match="decides every round again"):
        create(memory_url, policy=policy, records="executed", **terms)


def test_a_compressed_payload_can_be_read_by_hand(memory_url: str) -> None:
    """By the format that is written down, with nothing but zlib and JSON."""
    with create(memory_url, compress=True) as dep:
        busy(dep, 1)
        payload = entries_of(dep)[1].payload
    length = int.from_bytes(payload[4:8], "little")
    assert (payload[:4], payload[8]) == (b"\xff" * 4, 1)
    content = zlib.decompress(payload[9 : 9 + length])
    size = int.from_bytes(content[:4], "little")
    header = json.loads(content[4 : 4 + size])
    planes = np.frombuffer(content[4 + size :], np.uint8).reshape(8, -1)
    numbers = np.ascontiguousarray(planes.T).view("<f8").ravel()
    assert header["arrays"][0] == ["candidates", [4, 3]]
    assert np.array_equal(numbers[:12].reshape(4, 3), rivals(np.random.default_rng(0)))
    assert payload[9 + length + 16 :].decode() == '{"user":"u-0","\\u00e9":"\\""}'


def test_an_erased_context_is_gone_and_the_chain_holds(url: str) -> None:
    with create(url) as dep:
        ids = busy(dep, 12)
        before = dep.state().hash
        assert dep.erase_context("0-3") == 1
        assert dep.erase_context("0-3") == 0
        assert dep.record(ids[3]).context is None
        assert dep.record(ids[3]).context_erased
        assert dep.record(ids[3]).to_dict()["context_erased"]
        assert dep.record(ids[4]).context["user"] == "u-4"
        assert dep.erase_contexts(before=datetime.now(UTC) - timedelta(hours=1)) == 0
        assert dep.erase_contexts(before=datetime.now(UTC) + timedelta(hours=1)) == 11
        stored = sql(url, "SELECT payload FROM c4b_journal")
        assert not any(b"u-" in bytes(payload) for (payload,) in stored)
        assert dep.state().hash == before
        assert dep.audit().clean
        busy(dep, 3, seed=1)
        assert dep.audit().clean
        assert in_agreement(dep)
        with pytest.raises(InvalidInput, match="of no decision"):
            dep.erase_context("unknown")
        with pytest.raises(InvalidInput, match="time zone"):
            dep.erase_contexts(before=datetime(2026, 1, 1))


def test_a_changed_context_is_noticed(sqlite_url: str) -> None:
    with create(sqlite_url) as dep:
        ids = busy(dep, 1)
        entry = entries_of(dep)[1]
        changed = entry.payload[:-3] + b"x" + entry.payload[-2:]
        sql(sqlite_url, "UPDATE c4b_journal SET payload = :p WHERE seq = 1", p=changed)
        with pytest.raises(JournalCorrupt, match="context"):
            dep.record(ids[0])
        assert "context" in str(dep.audit().finding)


def test_salts_hide_equal_contexts(memory_url: str) -> None:
    with create(memory_url) as dep:
        for _ in range(2):
            dep.decide(rivals(np.random.default_rng(0)), BASELINE, context={"user": "u"})
        hashes = {e.unpack()[0]["context_hash"] for e in entries_of(dep) if e.kind == DECIDED}
        assert len(hashes) == 2


def test_archive_and_audit_across_the_seam(any_url: str, tmp_path: Path) -> None:
    first, second = tmp_path / "first.parquet", tmp_path / "second.parquet"
    with create(any_url, snapshot_every=10) as dep:
        assert dep.archive(first, "nothing yet", by="ann") == 0
        ids = busy(dep, 40)
        whole = dep.audit()
        count = dep.archive(first, "a year old", by="ann")
        assert count > 40
        assert dep.state().archived == count
        with pytest.raises(EntryArchived, match="--archive"):
            dep.audit()
        for call in (
            lambda: dep.record(ids[0]),
            lambda: dep.decide(rivals(np.random.default_rng(0)), BASELINE, request_id="0-0"),
            lambda: dep.observe(ids[0], 0.5),
        ):
            with pytest.raises(EntryArchived, match="unarchive"):
                call()
        assert dep.decisions(newest=True, limit=1)[0].decision.id == ids[-1]
        assert 0 < len(dep.decisions(limit=1000)) < 40
        busy(dep, 20, seed=1)
        assert dep.archive(second, "more", by="ann") > 0
        late = busy(dep, 5, seed=2)
        report = dep.audit(archive=[second, first])
        assert report.clean, str(report)
        assert (report.decisions, report.orders) == (65, 2)
        assert report.entries > whole.entries
        assert dep.record(late[0]).context["user"] == "u-0"
        with pytest.raises(InvalidInput, match="exists already"):
            dep.archive(first, "again")
    with Deployment.open(any_url, "shop") as dep:  # from a snapshot
        busy(dep, 3, seed=3)
        assert dep.state().rounds == 68
    if not any_url.startswith("memory:"):
        Deployment.unarchive(any_url, "shop", first)
        Deployment.unarchive(any_url, "shop", second)
        with Deployment.open(any_url, "shop") as dep:
            assert dep.audit().clean
            assert in_agreement(dep)
            assert dep.record(ids[0]).context_erased  # an archive leaves contexts out


def test_an_archive_keeps_what_is_open(memory_url: str, tmp_path: Path) -> None:
    with create(memory_url, snapshot_every=5) as dep:
        made = dep.decide(rivals(np.random.default_rng(0)), BASELINE)
        busy(dep, 20)
        assert dep.archive(tmp_path / "a.parquet", "old", by="ann") == 0
        dep.observe(made.id, 0.5)
        busy(dep, 5, seed=1)
        early = datetime.now(UTC) - timedelta(days=1)
        assert dep.archive(tmp_path / "a.parquet", "old", before=early, by="ann") == 0
        assert dep.archive(tmp_path / "a.parquet", "old", by="ann") > 0


def test_a_damaged_archive_is_found(sqlite_url: str, tmp_path: Path) -> None:
    import polars as pl  # noqa: PLC0415 (slow)

    path = tmp_path / "a.parquet"
    with create(sqlite_url, snapshot_every=10) as dep:
        busy(dep, 30)
        dep.archive(path, "old", by="ann")
        frame = pl.read_parquet(path)
        payloads = frame["payload"].to_list()
        fields, arrays = entries_of_row(payloads[6])
        payloads[6] = pack(fields, {**arrays, "numbers": arrays["numbers"] + 1.0})
        frame.with_columns(payload=pl.Series(payloads)).write_parquet(path)
        report = dep.audit(archive=[path])
        assert not report.clean
        assert report.entry in (7, 8)
    with pytest.raises(InvalidInput, match="damaged"):
        Deployment.unarchive(sqlite_url, "shop", path)


def test_another_table_is_no_archive(memory_url: str, tmp_path: Path) -> None:
    import polars as pl  # noqa: PLC0415 (slow)

    path = tmp_path / "a.parquet"
    with create(memory_url, snapshot_every=10) as dep:
        busy(dep, 30)
        dep.archive(path, "old", by="ann")
        frame = pl.read_parquet(path)
        others = frame[:0], frame[["seq"]], frame.with_columns(seq=pl.col("kind")), frame.drop("payload")
        for other in others:
            other.write_parquet(path)
            with pytest.raises(InvalidInput, match="must be a file that an archive was written to"):
                Deployment.unarchive(memory_url, "shop", path)
            with pytest.raises(InvalidInput, match="must be a file that an archive was written to"):
                dep.audit(archive=[path])
        frame.write_parquet(path)
        assert dep.audit(archive=[path]).clean


def entries_of_row(payload: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    return entry_contents(envelope.opened(payload))


ARCHIVING = """
import itertools, sys
import numpy as np
from c4b import Deployment
url, folder, seed = sys.argv[1:]
rng = np.random.default_rng(int(seed))
with Deployment.open(url, "shop", snapshot_every=7) as dep:
    for n in itertools.count():
        for k in range(4):
            id_ = f"{seed}-{n}-{k}"
            made = dep.decide(1.0 + 0.2 * rng.normal(size=(2, 3)), [1.0, 0.0, 0.0], id_, {"user": id_})
            dep.observe(made.id, 0.5)
        dep.erase_context(f"{seed}-{n}-0")
        for pending in dep.pending():
            dep.forget(pending.id, independent=True)
        dep.archive(f"{folder}/{seed}-{n}.parquet", "old", by="ann")
"""


@pytest.mark.slow
def test_kills_while_it_archives_and_erases(url: str, tmp_path: Path) -> None:
    """SIGKILL at random moments of archiving, erasing and deciding; the next one finishes the work.

    Processes of their own, because Polars has threads, which do not survive a fork.
    """
    rng = np.random.default_rng(1)
    create(url, snapshot_every=7).close()
    for seed in range(2):
        arguments = [sys.executable, "-c", ARCHIVING, url, str(tmp_path), str(seed)]
        with subprocess.Popen(arguments) as process:
            while not list(tmp_path.glob(f"{seed}-*.parquet")):
                assert process.poll() is None
                time.sleep(0.01)
            time.sleep(float(rng.uniform(0.0, 0.2)))
            process.kill()
    with Deployment.open(url, "shop", snapshot_every=7) as dep:
        busy(dep, 20)
        dep.archive(tmp_path / "last.parquet", "old", by="ann")
        report = dep.audit(sample=2, archive=sorted(tmp_path.glob("*.parquet")))
        assert report.clean, str(report)
        assert report.orders >= 2


def test_who_asks_for_what_was_archived_hinders_nobody_else(memory_url: str, tmp_path: Path) -> None:
    with create(memory_url, snapshot_every=4) as dep:
        pool = rivals(np.random.default_rng(0))
        old = dep.decide(pool, BASELINE, request_id="old", context={"user": "ann"})
        dep.observe(old.id, 0.5)
        busy(dep, 20)
        last = dep.decide(pool, BASELINE)
        assert dep.archive(tmp_path / "a.parquet", "a year old") > 2
        answers = dep.call_each([dep.request(pool, BASELINE, id_) for id_ in ("old", "new")])
        assert isinstance(answers[0], EntryArchived)
        assert isinstance(answers[1], Decision)
        reported = dep.call_each([dep.reported(old.id, 0.5), dep.reported(last.id, 0.5)])
        assert isinstance(reported[0], EntryArchived)
        assert reported[1] is None
        assert dep.erase_context("old") == 0  # no file holds a context


def test_an_idle_worker_goes_on_after_another_has_archived(any_url: str, tmp_path: Path) -> None:
    """What it has not read yet is in the file; a snapshot carries it across the seam."""
    with create(any_url, snapshot_every=4) as dep, Deployment.open(any_url, "shop") as idle:
        busy(dep, 3)
        assert idle.state() == dep.state()
        busy(dep, 20, seed=1)
        assert dep.archive(tmp_path / "a.parquet", "a year old", by="ann") > 20
        made = idle.decide(rivals(np.random.default_rng(0)), BASELINE)
        assert dep.record(made.id).decision.bank == made.bank
        assert idle.state() == dep.state()
        dep.observe(made.id, 0.5)
        busy(dep, 20, seed=2)
        assert dep.archive(tmp_path / "b.parquet", "a year old", by="ann") > 20
        assert idle.state() == dep.state()
        assert idle.earnings() == dep.earnings()


def test_what_was_brought_back_is_there_again_and_never_lost(sqlite_url: str, tmp_path: Path) -> None:
    """Whoever has brought an archive back may throw the file away."""
    first, second = tmp_path / "first.parquet", tmp_path / "second.parquet"
    with create(sqlite_url, snapshot_every=10) as dep:
        ids = busy(dep, 30)
        assert dep.archive(first, "a year old") > 30
        Deployment.unarchive(sqlite_url, "shop", first)
        assert [each.decision.id for each in dep.decisions(limit=1000)] == ids
        (found,) = dep.find(request_id="0-0").records
        assert found.decision.id == ids[0]
        first.unlink()
        ids += busy(dep, 20, seed=1)
        assert dep.archive(second, "two years old") > 60
        assert len(dep.decisions(limit=1000)) < 30
        report = dep.audit(archive=[second])
        assert (report.clean, report.decisions) == (True, 50)
        Deployment.unarchive(sqlite_url, "shop", second)
        assert dep.audit().clean
        assert [each.decision.id for each in dep.decisions(limit=1000)] == ids


def test_a_witness_goes_on_after_its_entry_was_archived(sqlite_url: str, tmp_path: Path) -> None:
    file, stored = tmp_path / "witness", tmp_path / "a.parquet"
    with create(sqlite_url, snapshot_every=5) as dep:
        busy(dep, 5)
        early = dep.witness(file)
        busy(dep, 20, seed=1)
        assert dep.archive(stored, "a year old") > early.seq
        dep.check_witness(file)
        assert dep.witness(file).seq == dep.state().seq
        assert dep.audit(witness=file, archive=[stored]).clean
        other = tmp_path / "other"
        Witness("shop", early.seq, "0" * 64).append_to(other)
        with pytest.raises(JournalCorrupt, match="does not continue"):
            dep.check_witness(other)
