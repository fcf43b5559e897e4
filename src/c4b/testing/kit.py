"""Defines what a check is, and runs checks on a policy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from c4b.evidence.model import LinearModel
from c4b.policies import Policy
from c4b.policies.catalogue import registry
from c4b.policies.catalogue.promise import HORIZON, SEED
from c4b.policies.catalogue.registry import PolicySpec

Factory = Callable[[], Policy]
Subject = str | PolicySpec | Factory

PASSED = "passed"


@dataclass(frozen=True)
class Check:
    """One named requirement.

    Call it to run it; if it fails, it raises AssertionError that begins with its name.
    """

    name: str
    _run: Callable[[Factory, int], str | None]

    def __call__(self, policy: Subject, *, seed: int = 0) -> str:
        """Return ``"passed"``, or why the requirement does not apply to this policy."""
        need_assertions()
        try:
            reason = self._run(_factory(policy), seed)
        except Exception as error:
            raise AssertionError(f"{self.name}: {error or type(error).__name__}") from error
        return PASSED if reason is None else f"does not apply: {reason}"

    def __str__(self) -> str:
        return self.name


def need_assertions() -> None:
    """Raise an error if Python runs without assertions, because every check would pass."""
    if not __debug__:
        raise RuntimeError(
            "python -O and PYTHONOPTIMIZE leave out assertions, and the checks are made of them: run "
            "them without"
        )


_CHECKS: list[Check] = []


def checks() -> list[Check]:
    """All checks, in the order in which ``check_policy`` runs them."""
    return list(_CHECKS)


def check_policy(policy: Subject, *, seed: int = 0) -> dict[str, str]:
    """Run every check and return each check's name and result. The first failure raises AssertionError.

    ``policy`` is a registered name, a ``Composition``, a ``GateFactory``, or a function without arguments
    that returns a new ``Policy`` (or an instance of a subclass). Each call of the function must return an
    equal policy, except for its ids.
    """
    return {check.name: check(policy, seed=seed) for check in _CHECKS}


def requirement(name: str) -> Callable[[Callable[[Factory, int], str | None]], None]:
    return lambda run: _CHECKS.append(Check(name, run))


def _factory(policy: Subject) -> Factory:
    if not isinstance(policy, str | PolicySpec):
        return policy
    model = LinearModel(dim=3, noise=0.1, norm_bound=1.0)
    needs = registry.needs(registry.get(policy) if isinstance(policy, str) else policy)
    horizon, seed = (100_000 if HORIZON in needs else None), (7 if SEED in needs else None)
    return lambda: Policy(policy, model, alpha=0.2, reserve=0.3, horizon=horizon, seed=seed)
