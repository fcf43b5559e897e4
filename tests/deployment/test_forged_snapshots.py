"""A snapshot with a recomputed digest: the entry after it says what its digest was."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest

from c4b import Deployment
from c4b.deployment.audit.entry_format import entry_contents
from c4b.deployment.configuration import Configuration
from c4b.deployment.transactions.state import State
from support.shop_world import BASELINE, create, in_agreement, seen, sql, trade


def forge(url: str, more: float) -> None:
    """Raise the bank in every snapshot, with right digests."""
    for seq, content in sql(url, "SELECT seq, content FROM c4b_snapshot"):
        (payload,) = sql(
            url,
            "SELECT payload FROM c4b_journal WHERE kind = 'decided' AND seq = "
            f"(SELECT max(seq) FROM c4b_journal WHERE kind = 'decided' AND seq <= {seq})",
        )[0]
        bank = entry_contents(bytes(payload))[1]["numbers"][1]
        changed = bytes(content).replace(bank.tobytes(), (bank + more).tobytes())
        assert changed != bytes(content)
        values = {"content": changed, "digest": hashlib.sha256(changed).digest(), "seq": seq}
        sql(
            url,
            "UPDATE c4b_snapshot SET content = :content, digest = :digest WHERE seq = :seq",
            **values,
        )


@pytest.fixture
def early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deployments as the first versions created them."""
    of = Configuration.of
    monkeypatch.setattr(Configuration, "of", lambda *given: replace(of(*given), attests_snapshots=False))


def test_it_is_not_used(url: str) -> None:
    with create(url, snapshot_every=10) as dep:
        trade(dep, 30)
        sound = dep.state()
    forge(url, 5.0)
    with Deployment.open(url, "shop") as dep:
        assert dep.state() == sound
        assert in_agreement(dep)
        report = dep.audit()
        assert "snapshot" in str(report.finding)


def test_it_is_found_although_replay_differs(
    sqlite_url: str, early: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a journal that attests nothing, on a machine that rounds in another way."""
    with create(sqlite_url, snapshot_every=10) as dep:
        trade(dep, 30)
        monkeypatch.setattr(State, "fingerprint", lambda self: "rounded in another way")
        report = dep.audit()
        assert report.clean
        assert report.replay_differences > 0
        forge(sqlite_url, 1e-9)
        assert "snapshot" in str(dep.audit().finding)


def test_an_early_journal_goes_on(sqlite_url: str, early: None) -> None:
    with create(sqlite_url, snapshot_every=10) as dep:
        trade(dep, 30)
    with Deployment.open(sqlite_url, "shop", snapshot_every=10) as dep:
        assert not dep.configuration.attests_snapshots
        trade(dep, 30, seed=1)
        assert in_agreement(dep)
        assert dep.audit().clean


def test_every_snapshot_is_attested(any_url: str) -> None:
    with create(any_url, snapshot_every=7) as dep:
        trade(dep, 20)
        dep.decide_many([([], BASELINE)] * 30)
        trade(dep, 20, seed=1)
        backend = dep._transactor.backend
        with backend.reading("shop") as transaction:
            numbers = transaction.snapshot_numbers()
            assert len(numbers) == 2
            for number in numbers:
                stored = transaction.snapshot(number)
                assert stored is not None
                fields, _ = transaction.range(number + 1, number + 1, 1)[0].unpack()
                assert fields["state"] == stored.digest.hex()
        with Deployment.open(any_url, "shop") as other:
            assert seen(other).seq == seen(dep).seq
        assert dep.audit().snapshots == 2
