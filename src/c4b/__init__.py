"""Conservative bandits with certified performance: Reserve-C4B.

A policy learns online which action is best. At every round at once, with a stated probability, its
cumulative mean reward stays above a set fraction of the incumbent's, less a declared reserve. Start with
:class:`LinearModel` and :class:`Policy`.
"""

from typing import TYPE_CHECKING, Any

from c4b import errors, policies
from c4b._warm_up import warm_up
from c4b.certificates import decoupling_penalty, joint_certificate, separate_certificate
from c4b.evidence import Evidence, LinearModel
from c4b.ledger import minimum_reserve
from c4b.policies import Composition, Decision, Explanation, Gate, GateTerms, Policy, Round, register_gate

if TYPE_CHECKING:
    from c4b.client.client import Client
    from c4b.deployment import Deployment
    from c4b.planning.ask import plan

__version__ = "0.1.0"

__all__ = [
    "Client",
    "Composition",
    "Decision",
    "Deployment",
    "Evidence",
    "Explanation",
    "Gate",
    "GateTerms",
    "LinearModel",
    "Policy",
    "Round",
    "decoupling_penalty",
    "errors",
    "joint_certificate",
    "minimum_reserve",
    "plan",
    "policies",
    "register_gate",
    "separate_certificate",
    "warm_up",
]


def __getattr__(name: str) -> Any:
    """Import names that need an optional extra on first use.

    These are ``Deployment`` (extra deploy), ``Client`` (extra client) and ``plan`` (extra study).
    """
    if name == "Deployment":
        from c4b.deployment import Deployment  # noqa: PLC0415 (an optional extra)

        return Deployment
    if name == "Client":
        from c4b.client.client import Client  # noqa: PLC0415 (an optional extra)

        return Client
    if name == "plan":
        from c4b.planning import plan  # noqa: PLC0415 (an optional extra)

        return plan
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """List all public names, including those that are imported on first use."""
    return sorted({*globals(), *__all__})
