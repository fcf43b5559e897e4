"""A journal that is cut off, rewritten or restored: witnesses and receipts tell; ids are not reused."""

from __future__ import annotations

import json
import shutil
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from c4b import Deployment
from c4b.errors import InvalidInput, JournalCorrupt, StoreUnavailable, UnknownDecision
from support.shop_world import BASELINE, create, entries_of, forge, in_agreement, rivals, sql, trade


def backed_up(tmp_path: Path, rounds: int = 6) -> str:
    """A store with a copy of it beside, made before its last decisions."""
    url = f"sqlite:///{tmp_path}/shop.db"
    with create(url) as dep:
        trade(dep, rounds)
    sql(url, "VACUUM INTO '%s'" % (tmp_path / "backup.db"))
    return url


def restore(tmp_path: Path) -> None:
    for leftover in tmp_path.glob("shop.db*"):
        leftover.unlink()
    shutil.copy(tmp_path / "backup.db", tmp_path / "shop.db")


def cut_off(dep: Deployment, url: str) -> None:
    """Remove the last entry, and make the one before it the last."""
    last = entries_of(dep)[-1]
    sql(url, "DELETE FROM c4b_journal WHERE seq = :seq", seq=last.seq)
    move = "UPDATE c4b_deployment SET head = :seq, head_hash = :hash"
    sql(url, move, seq=last.seq - 1, hash=last.previous)


def test_ids_are_not_used_again_after_a_restore(tmp_path: Path) -> None:
    url = backed_up(tmp_path)
    with Deployment.open(url, "shop") as dep:
        lost = dep.decide(rivals(np.random.default_rng(1)), BASELINE, request_id="lost")
    restore(tmp_path)
    with Deployment.open(url, "shop") as dep:
        other = dep.decide(rivals(np.random.default_rng(2)), BASELINE, request_id="other")
        assert lost.receipt is not None
        assert other.receipt is not None
        assert lost.receipt.seq == other.receipt.seq
        assert lost.id != other.id
        for late in (
            lambda: dep.observe(lost.id, 0.5),
            lambda: dep.forget(lost.id),
            lambda: dep.executed(lost.id),
            lambda: dep.record(lost.id),
        ):
            with pytest.raises(UnknownDecision, match="an old backup"):
                late()
        dep.observe(other.id, 0.5)
        with pytest.raises(UnknownDecision, match="an old backup"):
            dep.observe(lost.id, 0.5)  # also when its number's outcome is closed
        assert dep.audit().clean
        assert in_agreement(dep)


def test_a_receipt_is_the_entry(any_url: str) -> None:
    with create(any_url, snapshot_every=4) as dep:
        made = [dep.decide([], BASELINE, request_id=f"r-{n}") for n in range(6)]
        entries = entries_of(dep)
        for decision in made:
            assert decision.receipt is not None
            assert entries[decision.receipt.seq].hash().hex() == decision.receipt.hash
        assert dep.decide([], BASELINE, request_id="r-2") == made[2]
        assert dep.record(made[3].id).decision == made[3]
        assert [each.id for each in dep.pending()] == [each.id for each in made]
        assert dep.state().oldest_pending == made[0].id
        assert in_agreement(dep)


@pytest.mark.parametrize("attack", ["cut off", "restored", "rewritten"])
@pytest.mark.parametrize("by", ["witness", "receipts"])
def test_what_only_a_witness_or_a_receipt_can_tell(tmp_path: Path, attack: str, by: str) -> None:
    url, kept = backed_up(tmp_path), tmp_path / "kept.jsonl"
    with Deployment.open(url, "shop") as dep:
        made = dep.decide(BASELINE[None, :], BASELINE)
        dep.witness(kept)
        if by == "receipts":
            kept.write_text(json.dumps(made.explain().to_dict()) + "\n")
        assert dep.audit(**{by: kept}).attested == 1
        if attack == "cut off":
            cut_off(dep, url)
        elif attack == "rewritten":
            forge(dep, dep.state().seq, lambda fields, arrays: fields.update(context='"other"'))
    if attack == "restored":
        restore(tmp_path)
    with Deployment.open(url, "shop") as dep:
        assert dep.audit().clean
        report = dep.audit(**{by: kept})
        assert made.receipt is not None
        assert report.entry == made.receipt.seq
        assert "attests" in str(report)
        if by == "witness":
            before = kept.read_bytes()
            with pytest.raises(JournalCorrupt, match="does not continue"):
                dep.witness(kept)
            assert kept.read_bytes() == before


def test_a_rollback_that_went_on_is_found(tmp_path: Path) -> None:
    """The journal is as long as before, but another one."""
    url, kept = backed_up(tmp_path), tmp_path / "kept.jsonl"
    with Deployment.open(url, "shop") as dep:
        dep.decide([], BASELINE)
        dep.witness(kept)
    restore(tmp_path)
    with Deployment.open(url, "shop") as dep:
        for _ in range(3):
            dep.decide([], BASELINE)
        assert dep.audit().clean
        assert "rewritten" in str(dep.audit(witness=kept))
        with pytest.raises(JournalCorrupt, match="does not continue"):
            dep.check_witness(kept)


def test_the_file(any_url: str, tmp_path: Path) -> None:
    kept = tmp_path / "kept.jsonl"
    with create(any_url) as dep, create(any_url, "other") as other:
        first = dep.witness(kept)
        assert dep.witness(kept) == first  # nothing new: no line
        other.witness(kept)
        dep.decide([], BASELINE)
        kept.write_bytes(kept.read_bytes() + b'{"deployment": "sh')  # a crash while it was written
        second = dep.witness(kept)
        assert (first.seq, second.seq) == (0, 1)
        assert len(kept.read_text().splitlines()) == 4
        assert dep.audit(witness=kept).attested == 2
        assert other.audit(witness=kept).attested == 1
        kept.write_text("nonsense\n" + kept.read_text())
        with pytest.raises(InvalidInput, match="line 1"):
            dep.audit(witness=kept)
        with pytest.raises(InvalidInput, match="cannot be read"):
            dep.audit(receipts=tmp_path / "absent")
        with pytest.raises(StoreUnavailable, match="cannot be written"):
            dep.witness(tmp_path / "no" / "such" / "folder")


def test_receipts_of_a_deployment_with_a_longer_name(memory_url: str, tmp_path: Path) -> None:
    answers = tmp_path / "answers.jsonl"
    with create(memory_url) as dep, create(memory_url, "shop-2") as other:
        with answers.open("w") as file:
            for made in (
                dep.decide([], BASELINE),
                other.decide([], BASELINE),
                other.decide([], BASELINE),
            ):
                assert made.receipt is not None
                file.write(json.dumps({"id": made.id, "receipt": made.receipt._asdict()}) + "\n")
        assert dep.audit(receipts=answers).attested == 1
        assert other.audit(receipts=answers).attested == 2


def test_two_pasts_in_one_file(memory_url: str, tmp_path: Path) -> None:
    kept = tmp_path / "kept.jsonl"
    for hash_ in ("00" * 32, "ff" * 32):
        with create(memory_url, f"shop-{hash_[0]}") as dep:
            made = dep.witness(kept)
            with kept.open("a") as file:
                file.write(json.dumps({**made._asdict(), "hash": hash_}) + "\n")
            for use in (dep.witness, dep.check_witness):
                with pytest.raises(JournalCorrupt, match="two different entries"):
                    use(kept)
            assert "rewritten" in str(dep.audit(witness=kept))


@pytest.mark.parametrize("said", ['{"seq": Infinity, "hash": ""}', "[" * 100_000, '{"seq": 1e999}'])
def test_a_line_that_somebody_made_up(memory_url: str, tmp_path: Path, said: str) -> None:
    kept = tmp_path / "kept.jsonl"
    kept.write_text(f"{said}\n\n")
    with create(memory_url) as dep, pytest.raises(InvalidInput, match="line 1"):
        dep.audit(witness=kept)


def test_a_file_that_says_nothing(memory_url: str, tmp_path: Path) -> None:
    """Else an emptied witness would be as good as none."""
    kept = tmp_path / "kept.jsonl"
    with create(memory_url) as dep, create(memory_url, "other") as other:
        other.witness(kept)
        for argument in ("witness", "receipts"):
            with pytest.raises(InvalidInput, match="says nothing of 'shop'"):
                dep.audit(**{argument: kept})  # type: ignore[arg-type]


def test_several_processes_audit_with_a_witness(sqlite_url: str, tmp_path: Path) -> None:
    with create(sqlite_url) as dep:
        trade(dep, 3)
        dep.witness(tmp_path / "kept")
        assert dep.audit(sample=0, jobs=2, witness=tmp_path / "kept").attested == 1


def test_an_address(sqlite_url: str, tmp_path: Path) -> None:
    with create(sqlite_url) as dep:
        trade(dep, 3)
        dep.witness(tmp_path / "kept")

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        address = f"http://127.0.0.1:{server.server_port}/kept"
        with Deployment.open(sqlite_url, "shop") as dep:
            assert dep.audit(witness=address).attested == 1
            with pytest.raises(InvalidInput, match="404"):
                dep.audit(witness=address + "x")
    finally:
        server.shutdown()
        server.server_close()
