"""Policies from the package, from a program, and from other installed packages."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import c4b
from c4b import errors, policies
from c4b.policies.catalogue import registry

PLUGIN = '''
import numpy as np
import c4b
from c4b.policies import Composition, GateFactory

cautious = Composition("outside-composition", "joint", "refresh", "propose", "from another package")

class Still(c4b.Gate):
    """Always plays the baseline."""
    def __init__(self, terms):
        self.terms, self.books = terms, np.array([terms.reserve, 0.0])
    def decide(self, round_, decision_id):
        details = np.full((5, len(round_.candidates)), -np.inf)
        self.books[1] += 1
        bank = self.bank
        return c4b.Decision(decision_id, None, bank, 0.0, 0.0, 0.0, bank, "still", None, details)
    def charge(self, bank, played):
        self.books[:] = bank, self.rounds + 1
    def amend(self, round_number, decided, executed, bank=None):
        pass
    def absorb(self, features, reward):
        pass
    def snapshot(self):
        return {"ledger": self.books}
    def restore(self, arrays):
        self.books[:] = arrays["ledger"]
    bank = property(lambda self: float(self.books[0]))
    rounds = property(lambda self: int(self.books[1]))

factory = GateFactory("still", Still, "never leaves the baseline")
'''
ENTRY_POINTS = """[c4b.gates]
outside-composition = outside_gates:cautious
still = outside_gates:factory
still-class = outside_gates:Still
broken = outside_gates:no_such_thing
"""
USE = """
import warnings
import c4b
model = c4b.LinearModel(dim=2, noise=0.1, norm_bound=1.0)
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    for name in ("outside-composition", "still", "still-class"):
        policy = c4b.Policy(name, model, reserve=1.0)
        decision = policy.decide([[1.0, 0.1]], [1.0, 0.0])
        policy.observe(decision.id, 0.5)
        print(name, decision.is_baseline, policy.rounds, decision.bank)
assert len(seen) == 1 and "'broken'" in str(seen[0].message), [str(w.message) for w in seen]
print(c4b.policies.names()[-3:])
try:
    c4b.Policy("broken", model)
except c4b.errors.UnknownName as error:
    print("refused", error.argument)
"""


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder that looks like an environment with one more package in it."""
    (tmp_path / "outside_gates.py").write_text(PLUGIN)
    metadata = tmp_path / "outside_gates-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: outside-gates\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(ENTRY_POINTS)
    return tmp_path


def test_other_packages_offer_policies_by_entry_points(installed: Path) -> None:
    code = f"import sys; sys.path.insert(0, {str(installed)!r})\n{USE}"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    assert lines[0].startswith("outside-composition ")
    assert lines[1:] == [
        "still True 1 1.0",
        "still-class True 1 1.0",
        "['outside-composition', 'still', 'still-class']",
        "refused policy",
    ]


def test_the_recommended_policy_is_the_default() -> None:
    model = c4b.LinearModel(dim=2, noise=0.1, norm_bound=1.0)
    assert policies.DEFAULT_POLICY == "reserve-c4b+"
    assert c4b.Policy(model=model).name == policies.DEFAULT_POLICY
    with pytest.raises(errors.InvalidInput, match=r"model = None: must be a c4b\.LinearModel"):
        c4b.Policy("refresh")


def test_a_taken_name_is_refused_and_the_first_stays() -> None:
    with pytest.raises(errors.InvalidInput, match="is taken"):
        policies.register_gate("refresh", "another")(lambda terms: None)  # type: ignore[arg-type]
    assert isinstance(policies.get("refresh"), c4b.Composition)


@pytest.mark.parametrize(("name", "make"), [("", print), ("no-function", 3)])
def test_a_factory_checks_what_it_is_made_of(name: str, make: object) -> None:
    with pytest.raises(errors.InvalidInput):
        policies.GateFactory(name, make, "")  # type: ignore[arg-type]


def test_what_is_no_gate_is_refused_by_name() -> None:
    made = policies.GateFactory("no-gate", lambda terms: 7, "makes a number")  # type: ignore[arg-type,return-value]
    with pytest.raises(errors.InvalidInput, match=r"'no-gate' must make a c4b\.policies\.Gate"):
        c4b.Policy(made, c4b.LinearModel(dim=2, noise=0.1, norm_bound=1.0))


def test_a_policy_is_recorded_by_its_parts_or_by_its_name() -> None:
    refresh = policies.get("refresh")
    assert registry.from_record({**registry.recorded(refresh), "more": 1}) == refresh
    made = policies.GateFactory("unregistered", lambda terms: None, "")  # type: ignore[arg-type,return-value]
    assert registry.recorded(made) == {"gate": {"name": "unregistered"}}
    with pytest.raises(errors.UnknownName):
        registry.from_record(registry.recorded(made))
