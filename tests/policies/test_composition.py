"""The registry: six names, and a seventh in one line."""

from collections.abc import Iterator

import numpy as np
import pytest

import c4b
from c4b import errors
from c4b.policies.catalogue import registry as policy_registry
from support.oracle_comparison import METHODS


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Registrations of a test do not outlive it."""
    monkeypatch.setattr(policy_registry, "_REGISTRY", dict(policy_registry._REGISTRY))
    return


def test_the_six_methods_of_the_paper() -> None:
    assert c4b.policies.names()[:6] == list(METHODS)
    assert [name for name in METHODS if not c4b.policies.get(name).gated] == ["linucb"]
    assert [name for name in METHODS if c4b.policies.get(name).selection == "propose"] == ["revalue"]


@pytest.mark.usefixtures("registry")
def test_a_registered_composition_works_at_once() -> None:
    c4b.policies.register(c4b.Composition("cautious", "joint", "refresh", "propose", "top proposal only"))
    assert c4b.policies.names()[-1] == "cautious"
    # d = 2, history on the first axis: (1.2, 1) has the highest UCB but is uncertified, so a policy
    # that proposes falls back where refresh takes (1.2, 0)
    pool, baseline = [[1.2, 1.0], [1.2, 0.0]], [1.0, 0.0]
    found = []
    for name in ("cautious", "refresh"):
        policy = c4b.Policy(name, c4b.LinearModel(2, 0.1, 1.0, ridge=1.0), alpha=0.1)
        policy.learn([[1.0, 0.0]] * 99, np.ones(99))
        found.append(policy.decide(pool, baseline).action)
    assert found == [None, 1]


@pytest.mark.usefixtures("registry")
def test_a_taken_name_is_refused_and_the_same_entry_is_not() -> None:
    c4b.policies.register(c4b.policies.get("refresh"))
    with pytest.raises(errors.InvalidInput, match="taken"):
        c4b.policies.register(c4b.Composition("refresh", "joint", "carry", "filter", "another"))
    assert c4b.policies.get("refresh").ledger == "refresh"


@pytest.mark.parametrize(
    ("argument", "parts"),
    [
        ("name", ("", "joint", "carry", "filter")),
        ("name", (None, "joint", "carry", "filter")),
        ("certificate", ("x", "apart", "carry", "filter")),
        ("ledger", ("x", "joint", "burn", "filter")),
        ("ledger", ("x", "separate", "refresh", "filter")),  # each exists, together they do not
        ("ledger", ("x", "joint", "revalue", "filter")),
        ("ledger", ("x", "joint", "budget", "pooled")),
        ("ledger", ("x", "known", "budget", "filter")),  # its regret bound is for another learner
        ("selection", ("x", "joint", "carry", "random")),
    ],
)
def test_parts_that_do_not_exist_or_do_not_fit(argument: str, parts: tuple[str, ...]) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        c4b.Composition(*parts, "a summary")
    assert caught.value.argument == argument


@pytest.mark.parametrize("bad", ["refresh", None, 3])
def test_only_compositions_can_be_registered(bad: object) -> None:
    with pytest.raises(errors.InvalidInput, match="Composition"):
        c4b.policies.register(bad)  # type: ignore[arg-type]


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(errors.UnknownName, match="'revalue-f'"):
        c4b.policies.get("revalue-g")
