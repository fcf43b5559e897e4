"""A successor: the same traffic, another model, what was learned and what is left of the reserve.

Two journals cannot be written in one transaction, so the order of the steps makes it safe. Each step is
recorded and may be repeated, so whoever was interrupted calls it again:

1. the predecessor is closed, for this successor and with the reserve that it hands over. From then on it
   decides nothing;
2. the successor is created with that reserve. Its first entry names the predecessor, and the number and
   the hash of the entry that closed it;
3. the outcomes that the predecessor had learned from when it was closed become the successor's history,
   in their order, and the successor is opened for decisions;
4. the predecessor records the hash of the successor's first entry, so that each journal knows the other.

Never do both decide. ``docs/theory.md`` says what both together promise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from c4b import _validate
from c4b._validate import Array
from c4b.deployment.configuration import Configuration
from c4b.deployment.limits import Limits
from c4b.deployment.transactions.decision_entry import recorded_outcome, recorded_play
from c4b.deployment.transactions.rollout import OPEN, SUCCEEDED, Rollout
from c4b.deployment.transactions.state import State
from c4b.errors import InvalidInput, NameTaken
from c4b.evidence.model import LinearModel
from c4b.journal import entries as kinds
from c4b.journal import seal
from c4b.journal.backend import JournalBackend
from c4b.journal.entries import GENESIS
from c4b.journal.journal import Journal
from c4b.policies.pending import OutcomeQueue, PendingOutcome
from c4b.policies.policy import Policy
from c4b.policies.rounds import slates

if TYPE_CHECKING:
    from c4b.deployment.deployment import Deployment

ROWS = 5000
"""Rows of history in one entry, unless they have so many features that fewer fit into it."""
Translation = Callable[[Array], Any]
"""From the predecessor's features (d,) of what was executed to those of the successor's model."""


_POLICY = ("alpha", "baseline_nonnegative", "absorb", "baseline_floor", "horizon", "seed")
_OWN = ("outcome_timeout", "timeout_reward", "records", "compress")
"""Terms of the policy and of the deployment that a successor inherits."""


class Handover(NamedTuple):
    """What the predecessor's journal says of it."""

    reserve: float
    closed_at: str
    """Name of the predecessor, number and hash of the entry that closed it."""


def start(
    kind: type[Deployment],
    url: str | JournalBackend,
    predecessor: str,
    name: str,
    order: tuple[str, str],
    model: LinearModel | None,
    reserve: float | None,
    translate: Translation | None,
    options: Mapping[str, Any],
) -> Deployment:
    """All steps; see ``Deployment.successor``."""
    why, by = order
    with kind.open(url, predecessor) as old:
        chosen = old.model if model is None else model
        rollout = old._transactor.read(lambda journal, state: state.rollout)
        options = {**_mode(rollout, options), **options}
        plan = _planned(name, chosen, old.configuration, reserve or 0.0, options)
        _check_name(kind, old, name)  # these raise before anything is closed
        in_order = old.configuration.absorb == "in-order"
        _check_history(old, translate, chosen, in_order)
        old._transactor.write(lambda commands: commands.succeed(name, reserve, by, why))
        handed = old._transactor.read(handover)
        plan = replace(plan, reserve=handed.reserve, predecessor=handed.closed_at)
        try:
            new = kind._begun(url, plan)
        except NameTaken:
            new = kind.open(url, name)
            if new.configuration.predecessor != handed.closed_at:
                new.close()
                raise
        try:
            _teach(old, new, translate, in_order)
            new._transactor.write(lambda commands: commands.control(OPEN, by, why))
            first = new._transactor.read(lambda journal, state: journal.at(0))
            assert first is not None
            more = {"successor": name, "hash": first.hash().hex()}
            old._transactor.write(lambda commands: commands.control(SUCCEEDED, by, why, **more))
        except BaseException:
            new.close()
            raise
    return new


def _mode(rollout: Rollout, options: Mapping[str, Any]) -> dict[str, str]:
    """The mode of the successor if none is given: that of the predecessor. A freeze or a ramp would end
    unnoticed, so whoever starts a successor has to say what shall be."""
    if "mode" not in options and (rollout.frozen is not None or rollout.ramp is not None):
        what = "frozen" if rollout.frozen is not None else "on a ramp"
        remedy = f"the predecessor is {what}; a successor does not inherit that: end it, or give mode"
        raise InvalidInput("mode", None, remedy)
    return {"mode": "shadow" if rollout.shadow else "live"}


def _planned(
    name: str, model: LinearModel, old: Configuration, reserve: float, options: Mapping[str, Any]
) -> Configuration:
    """The successor's configuration, checked; what is not given is the predecessor's."""
    terms = {each: getattr(old, each) for each in (*_POLICY, *_OWN)}
    if unknown := set(options) - {*terms, "policy", "mode"}:
        remedy = f"is none of policy, mode, {', '.join(terms)}"
        raise InvalidInput("options", min(unknown), remedy)
    terms |= options
    policy = Policy(
        terms.pop("policy", old.spec), model, reserve=reserve, **{k: terms.pop(k) for k in _POLICY}
    )
    return Configuration.of(name, policy, key=seal.first_id(), **terms)


def _check_name(kind: type[Deployment], old: Deployment, name: str) -> None:
    """Refuse a name that another deployment has."""
    backend = old._transactor.backend
    if name in backend.names():
        with kind.open(backend, name) as existing:
            if not str(existing.configuration.predecessor).startswith(f"{old.name}@"):
                raise NameTaken(f"{name!r} exists already; choose another name")


def _check_history(
    old: Deployment, translate: Translation | None, model: LinearModel, in_order: bool
) -> None:
    """Refuse a history that the successor's model cannot be taught."""
    if translate is None and model.dim != old.model.dim:
        remedy = f"is needed: the predecessor has {old.model.dim} features, the successor {model.dim}"
        raise InvalidInput("translate", None, remedy)

    def check(journal: Journal, state: State) -> None:
        for features, rewards in pages(absorbed_rows(journal, state, in_order), translate, model.dim):
            _validate.table("translate", features, model.dim)
            model.check_rewards("rewards", rewards)

    old._transactor.read(check)


def _teach(old: Deployment, new: Deployment, translate: Translation | None, in_order: bool) -> None:
    """Give the successor what its predecessor has learned from."""
    if not new._transactor.read(lambda journal, state: state.rollout.waiting):
        return

    def teach(journal: Journal, state: State) -> None:
        rows = absorbed_rows(journal, state, in_order)
        for n, (features, rewards) in enumerate(pages(rows, translate, new.model.dim)):
            new.learn(features, rewards, request_id=f"history of {old.name}, page {n}")

    old._transactor.read(teach)


def handover(journal: Journal, state: State) -> Handover:
    """Of a predecessor that was closed for a successor."""
    order = state.rollout.succession
    assert order is not None
    entry = journal.at(order.seq)
    assert entry is not None
    closed_at = f"{state.configuration.name}@{entry.seq}:{entry.hash().hex()}"
    return Handover(order.handed, closed_at)


def absorbed_rows(journal: Journal, state: State, in_order: bool) -> Iterator[tuple[Array, float]]:
    """Features and reward of every row that a deployment has learned from, in that order; once it is
    closed for a successor, until then: a repeated succession must give the same history."""
    outcomes, round_of, rounds = OutcomeQueue(in_order), dict[int, int](), 0
    order = state.rollout.succession
    for entry in journal.tail(-1, GENESIS):
        if order is not None and entry.seq >= order.seq:
            return
        fields, arrays = entry.unpack()
        if entry.kind == kinds.LEARNED:
            yield from zip(arrays["features"], arrays["rewards"].tolist(), strict=True)
        elif entry.kind == kinds.DECIDED:
            outcomes.open[rounds] = PendingOutcome(*recorded_play(fields, arrays))
            round_of[entry.seq], rounds = rounds, rounds + 1
        elif entry.about is not None and entry.kind == kinds.EXECUTED:
            pending = outcomes.open[round_of[entry.about]]
            pending.executed, pending.items = arrays["features"], arrays.get("items")
        elif entry.about is not None:
            number = round_of.pop(entry.about)
            reported = outcomes.open[number]
            reported.lost = entry.kind == kinds.FORGOTTEN
            reported.reward = None if reported.lost else recorded_outcome(arrays)
            while (closed := outcomes.close(number)) is not None:
                yield from _rows(closed)


def _rows(closed: PendingOutcome) -> Iterator[tuple[Array, float]]:
    """The observations that an outcome was: none if it was lost, one for each item of a slate."""
    if closed.reward is None:
        return
    if closed.items is not None:
        yield from slates.rows(closed.items, closed.reward)
    else:
        assert isinstance(closed.reward, float)
        yield closed.executed, closed.reward


def pages(
    rows: Iterator[tuple[Array, float]], translate: Translation | None, dim: int
) -> Iterator[tuple[Array, Array]]:
    """History for the successor, some rows at a time."""
    features: list[Any] = []
    rewards: list[float] = []
    most = min(ROWS, Limits().rows(dim))
    for x, y in rows:
        features.append(x if translate is None else translate(x))
        rewards.append(y)
        if len(rewards) == most:
            yield _table(features, dim), np.array(rewards)
            features, rewards = [], []
    if rewards:
        yield _table(features, dim), np.array(rewards)


def _table(features: list[Any], dim: int) -> Array:
    table = np.array(features, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != dim:
        remedy = f"must give {dim} features for each row, as many as the successor's model has"
        raise InvalidInput("translate", table.shape[1:], remedy)
    return table
