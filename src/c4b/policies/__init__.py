"""Policies, from named parts or in plain Python, with ``decide`` and ``observe``."""

from c4b.policies.catalogue.composition import Composition
from c4b.policies.catalogue.registry import (
    DEFAULT_POLICY,
    GateFactory,
    get,
    names,
    register,
    register_gate,
)
from c4b.policies.compiled.compiled_gate import CompiledGate
from c4b.policies.gate import Gate, GateTerms, Played
from c4b.policies.policy import Policy
from c4b.policies.rounds.candidate_fields import CandidateField
from c4b.policies.rounds.decision import Decision
from c4b.policies.rounds.explanation import CandidateReport, Explanation
from c4b.policies.rounds.round import Round

from c4b.policies import field  # isort: skip  (registers its gates)

__all__ = [
    "DEFAULT_POLICY",
    "CandidateField",
    "CandidateReport",
    "CompiledGate",
    "Composition",
    "Decision",
    "Explanation",
    "Gate",
    "GateFactory",
    "GateTerms",
    "Played",
    "Policy",
    "Round",
    "field",
    "get",
    "names",
    "register",
    "register_gate",
]
