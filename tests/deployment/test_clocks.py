"""Clocks that are wrong: time in the journal never runs backwards, and never stops for long."""

from __future__ import annotations

import time

import pytest

from c4b import Deployment
from c4b.deployment.transactions.journal_clock import SETBACK, JournalClock, JournalTime
from support.shop_world import BASELINE, create, entries_of, in_agreement, trade

YEARS = 10 * 365.25 * 86400.0
MINUTE = 60_000_000


def test_windows_close_after_a_clock_was_ten_years_ahead(any_url: str) -> None:
    now = time.time()
    with create(any_url, outcome_timeout=60.0, timeout_reward=0.0, snapshot_every=5) as dep:
        clock = dep._transactor
        clock.clock = lambda: now
        early = dep.decide([], BASELINE)
        clock.clock = lambda: now + YEARS
        during = dep.decide([], BASELINE)  # closes the window of the first one: the clock said so
        clock.clock = lambda: now + 10
        after = dep.decide([], BASELINE)
        assert [r.outcome for r in dep.decisions()] == ["timeout", "pending", "pending"]
        assert dep.state().clock_ahead == pytest.approx(YEARS - 10, abs=1.0)
        clock.clock = lambda: now + 40
        assert dep.pending()[0].age == pytest.approx(30.0, abs=1.0)
        assert dep.state().oldest_pending_age == pytest.approx(30.0, abs=1.0)
        assert dep.expire() == 0
        clock.clock = lambda: now + 75
        assert dep.expire() == 2
        assert {r.decision.id: r.outcome for r in dep.decisions()} == dict.fromkeys(
            [early.id, during.id, after.id], "timeout"
        )
        trade(dep, 10)
        times = [entry.at for entry in entries_of(dep)]
        assert times == sorted(times)
        assert in_agreement(dep)
        assert dep.audit().clean
    with Deployment.open(any_url, "shop") as dep:
        dep._transactor.clock = lambda: now + 100
        assert dep.state().clock_ahead == pytest.approx(YEARS - 10, abs=1.0)  # as recorded


def test_windows_close_without_another_entry(any_url: str) -> None:
    """Nothing but ``expire`` is called after the clock was set right."""
    now = time.time()
    with create(any_url, outcome_timeout=60.0) as dep:
        dep._transactor.clock = lambda: now + YEARS
        dep.decide([], BASELINE)
        for seconds, closed in ((0, 0), (50, 0), (70, 1)):
            dep._transactor.clock = lambda seconds=seconds: now + seconds  # type: ignore[misc]
            assert dep.expire() == closed
        assert dep.audit().clean


def test_small_differences_between_clocks_do_not_add_up() -> None:
    clock, last = JournalClock(), 0
    for n in range(1000):
        last = max(clock.time(n * MINUTE // 60 + (n % 2) * MINUTE, last, 0).now, last)
    assert last <= 1000 * MINUTE // 60 + MINUTE


def test_two_workers_whose_clocks_differ(any_url: str) -> None:
    """Time in the journal is at most that of the clock which is ahead."""
    now = time.time()
    with create(any_url, outcome_timeout=3600.0, timeout_reward=0.0) as right:
        right._transactor.clock = lambda: now
        with Deployment.open(any_url, "shop") as ahead:
            ahead._transactor.clock = lambda: now + 600.0
            for _ in range(20):
                right.decide([], BASELINE)
                ahead.decide([], BASELINE)
        assert {record.outcome for record in right.decisions()} == {"pending"}
        assert max(entry.at for entry in entries_of(right)) <= (now + 601.0) * 1e6
        assert right.audit().clean


def test_a_machine_that_starts_in_1970_until_its_clock_is_set(any_url: str) -> None:
    now = time.time()
    with create(any_url, outcome_timeout=3600.0, timeout_reward=0.0) as dep:
        for clock in (now, 10.0, now + 20, 30.0, now + 40):
            dep._transactor.clock = lambda clock=clock: clock  # type: ignore[misc]
            dep.decide([], BASELINE)
        assert {record.outcome for record in dep.decisions()} == {"pending"}
        assert dep.state().clock_ahead == 0.0
        assert dep.audit().clean


def test_a_clock_that_jumps_ahead_again_and_again(any_url: str) -> None:
    now = time.time()
    with create(any_url) as dep:
        for n in range(50):
            dep._transactor.clock = lambda n=n: now + n + (n % 2) * 30 * YEARS  # type: ignore[misc]
            dep.decide([], BASELINE)
        assert dep.state().at.timestamp() <= now + 50 + 30 * YEARS


def test_which_shift_a_clock_gets() -> None:
    clock = JournalClock()
    assert clock.time(5, 5 + SETBACK, 0) == JournalTime(5, 0)
    assert clock.time(5, 6 + SETBACK, 0) == JournalTime(6 + SETBACK, 1 + SETBACK)
    assert clock.time(7, 60 + SETBACK, 0) == JournalTime(8 + SETBACK, 1 + SETBACK)
    assert clock.time(7, 60 + SETBACK, 99) == JournalTime(8 + SETBACK, 1 + SETBACK)  # its own
    assert clock.time(60, 60 + SETBACK, 99) == JournalTime(60, 0)  # it was set right
    assert JournalClock().time(7, 60 + SETBACK, 99) == JournalTime(106, 99)  # a later process
