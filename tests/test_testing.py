"""The conformance kit: every registered policy passes, every broken one is caught by name."""

import itertools
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import c4b
from c4b import testing
from c4b.ledger.books import BANK
from support.evidence_internals import inside

MODEL = c4b.LinearModel(3, 0.1, 1.0)
CHECKS = [
    pytest.param(check, marks=pytest.mark.slow) if "memory" in check.name else check
    for check in testing.checks()
]


@pytest.mark.parametrize("check", CHECKS, ids=str)
@pytest.mark.parametrize("name", c4b.policies.names())
def test_registered_policies_conform(name: str, check: testing.Check) -> None:
    check(name, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("absorb", ["in-order", "on-arrival"])
@pytest.mark.parametrize("nonnegative", [True, False])
def test_other_settings_conform(absorb: str, nonnegative: bool) -> None:
    model = c4b.LinearModel(5, 0.5, 2.0, 1.0, 0.01, "mixture")
    report = testing.check_policy(
        lambda: c4b.Policy("refresh", model, 0.3, 1.0, nonnegative, absorb), seed=2
    )
    assert list(report) == [check.name for check in testing.checks()]
    unusual = {name for name, verdict in report.items() if verdict != "passed"}
    delays = {"absorbs delayed outcomes in the order of decisions"}
    assert unusual == (delays if absorb == "on-arrival" else set())


@pytest.mark.slow
def test_a_new_composition_conforms_without_registration() -> None:
    report = testing.check_policy(c4b.Composition("own", "joint", "refresh", "propose", "a test's own"))
    assert set(report.values()) == {"passed"}


@pytest.mark.slow
def test_what_does_not_apply_is_said() -> None:
    report = testing.check_policy("linucb")
    assert (
        report["the bank is never negative"] == "does not apply: no bank is carried from round to round"
    )
    assert list(report.values()).count("passed") == len(report) - 3


# -- broken policies -------------------------------------------------------------------------------


class BanksRewards(c4b.Policy):
    def observe(self, decision_id: str, reward: float) -> None:
        super().observe(decision_id, reward)
        self.gate.ledger[BANK] += reward


class BanksHistory(c4b.Policy):
    def learn(self, features: object, rewards: object) -> None:
        super().learn(features, rewards)
        self.gate.ledger[BANK] += 1.0


class PointEstimate(c4b.Policy):
    """Widths of zero: candidates and baseline compared by estimates."""

    def decide(self, candidates: Any, baseline: Any) -> c4b.Decision:
        inside(self.evidence).reach[:] = 0.0
        return super().decide(candidates, baseline)


class NoWidthBeforeData(c4b.Policy):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        inside(self.evidence).reach[:] = 0.0


class IgnoresExecution(c4b.Policy):
    def executed(self, decision_id: str, features: object = None, *, independent: bool = False) -> None:
        pass


class AssertsForItsCaller(c4b.Policy):
    def forget(self, decision_id: str, *, independent: bool = False) -> None:
        super().forget(decision_id, independent=True)


class ForgetsPending(c4b.Policy):
    @classmethod
    def load(cls, path: Any) -> c4b.Policy:
        policy = super().load(path)
        policy._run.outcomes.open.clear()
        return policy


class Hasty(c4b.Policy):
    """Says in-order, absorbs on arrival."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._run.outcomes.in_order = False


class Hoarder(c4b.Policy):
    def observe(self, decision_id: str, reward: float) -> None:
        super().observe(decision_id, reward)
        self.__dict__.setdefault("diary", []).append((decision_id, reward))


class ChargesFirst(c4b.Policy):
    """Changes its state before it looks at the input."""

    def decide(self, candidates: Any, baseline: Any) -> c4b.Decision:
        self.gate.ledger[BANK] -= 0.01
        return super().decide(candidates, baseline)


class Overdraws(c4b.Policy):
    """Plays for credit that it does not have."""

    def decide(self, candidates: Any, baseline: Any) -> c4b.Decision:
        decision = super().decide(candidates, baseline)
        self.gate.ledger[BANK] -= 1.0
        return decision


class LearnsTwice(c4b.Policy):
    def observe(self, decision_id: str, reward: float) -> None:
        super().observe(decision_id, reward)
        self.evidence.learn([[0.0] * self.model.dim], [0.0])


class FirstCandidate(c4b.Policy):
    def decide(self, candidates: Any, baseline: Any) -> c4b.Decision:
        return super().decide(candidates[:1], baseline)


class Overclaims(c4b.Policy):
    def decide(self, candidates: Any, baseline: Any) -> c4b.Decision:
        return super().decide(candidates, baseline)._replace(bank=1e3)


class Moody(c4b.Policy):
    moods = itertools.count()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.gate.ledger[BANK] += 0.1 * next(self.moods)


class NeverBaseline(c4b.Policy):
    def decide(self, candidates: Any, baseline: Any) -> c4b.Decision:
        return super().decide(candidates, baseline)._replace(action=0)


class Crashes(c4b.Policy):
    def save(self, path: Any) -> None:
        raise RuntimeError("disk on fire")


class ForgetsToCharge(c4b.Policy):
    """Its gate does not enter what a journal recorded."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.gate.charge = lambda bank, played: None


class CallsTheIncumbentNew(c4b.Policy):
    """Says that it played a candidate when that was the baseline."""

    def decide(self, candidates: Any, baseline: Any) -> c4b.Decision:
        decision = super().decide(candidates, baseline)
        again = [k for k, x in enumerate(candidates) if np.array_equal(x, baseline)]
        return decision._replace(action=again[0]) if again and decision.is_baseline else decision


CAUGHT = [
    (BanksRewards, "no reward ever reaches the ledger"),
    (BanksRewards, "the bank never exceeds the truth"),
    (BanksHistory, "history is evidence, never budget"),
    (BanksHistory, "the bank never exceeds the truth"),
    (PointEstimate, "the bank never exceeds the truth"),
    (NoWidthBeforeData, "decides before any data"),
    (IgnoresExecution, "another execution is charged"),
    (AssertsForItsCaller, "refuses what a later outcome may have caused"),
    (IgnoresExecution, "refuses what a later outcome may have caused"),
    (ForgetsPending, "continues bit for bit after save and load"),
    (Hasty, "absorbs delayed outcomes in the order of decisions"),
    (Hoarder, "memory does not grow with rounds"),
    (ChargesFirst, "bad input changes nothing"),
    (Overdraws, "the bank is never negative"),
    (LearnsTwice, "a repeated outcome is harmless, a contradiction is not"),
    (FirstCandidate, "does not care how candidates are ordered or repeated"),
    (Overclaims, "says what it does"),
    (Moody, "is deterministic"),
    (NeverBaseline, "plays the baseline when there are no candidates"),
    (Crashes, "continues bit for bit after save and load"),
    (CallsTheIncumbentNew, "the incumbent offered again is the baseline"),
    (ForgetsToCharge, "takes over recorded decisions without deciding again"),
]


@pytest.mark.parametrize(
    ("broken", "name"),
    [pytest.param(*pair, marks=pytest.mark.slow) if "memory" in pair[1] else pair for pair in CAUGHT],
)
def test_broken_policies_are_caught_by_name(broken: type[c4b.Policy], name: str) -> None:
    check = next(check for check in testing.checks() if check.name == name)
    with pytest.raises(AssertionError, match=f"^{name}: ."):
        check(lambda: broken("refresh", MODEL, 0.2, 0.3))


def test_every_check_can_fail() -> None:
    """No check is decoration: each catches some broken policy."""
    assert {name for _, name in CAUGHT} == {check.name for check in testing.checks()}


@pytest.mark.parametrize(
    "what", ["c4b.testing.check_policy('refresh')", "import c4b.testing.journal_backend"]
)
def test_nothing_passes_where_assertions_are_left_out(what: str) -> None:
    command = [sys.executable, "-O", "-c", f"import c4b.testing; {what}"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "PYTHONOPTIMIZE leave out assertions" in ended.stderr
