"""Named compositions of evidence, certificates, ledger and selection; ``decide`` and ``observe``."""

from c4b.policies.composition import Composition, get, names, register
from c4b.policies.decision import CandidateReport, Decision, Explanation
from c4b.policies.policy import Policy

__all__ = [
    "CandidateReport",
    "Composition",
    "Decision",
    "Explanation",
    "Policy",
    "get",
    "names",
    "register",
]
