"""Histories of several workers with crashes, lost answers, damage and wrong clocks, from seeds."""

from __future__ import annotations

import pytest

from c4b.deployment.transactions import snapshot
from c4b.deployment.transactions.commands import Commands
from c4b.deployment.transactions.recent_requests import RecentRequests
from c4b.deployment.transactions.transactor import Transactor
from support.simulation import Simulation, failure, shrunk

SEEDS = 100


@pytest.mark.parametrize("block", range(0, SEEDS, 25))
def test_histories(block: int) -> None:
    for seed in range(block, block + 25):
        if failure(seed) is not None:
            pytest.fail(shrunk(seed))


def test_a_seed_is_one_history() -> None:
    one, other = Simulation(7), Simulation(7)
    one.run()
    other.run()
    assert one.trace == other.trace
    assert len(one.trace) > 20


BROKEN = {
    "request ids are not remembered": (RecentRequests, "find", lambda *_: None),
    "a lost answer is settled by trying again": (
        Transactor,
        "_settled",
        lambda self, command, entries, lost: self._locked(command),
    ),
    "any snapshot is believed": (snapshot, "intact", lambda _: True),
    "an overtaken decision is not taken back": (Commands, "take_back", lambda _: True),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_the_simulation_notices(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, name, replacement = BROKEN[broken]
    if broken == "any snapshot is believed":
        monkeypatch.setattr(snapshot, "_is_attested", lambda *_: True)
    monkeypatch.setattr(where, name, replacement)
    seed = next(seed for seed in range(200) if failure(seed) is not None)
    assert shrunk(seed).startswith(f"seed {seed}, ")
